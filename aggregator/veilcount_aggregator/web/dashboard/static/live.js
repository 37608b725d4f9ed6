// Fetches the page once a second, and shows its list of reports.
(() => {
  'use strict';
  const connection = document.getElementById('connection');
  const renew = async () => {
    const reply = await fetch(location.pathname);
    if (reply.redirected) { location.reload(); return; } // the session has ended
    const page = new DOMParser().parseFromString(await reply.text(), 'text/html');
    const fresh = page.getElementById('reports'), shown = document.getElementById('reports');
    if (fresh && fresh.innerHTML !== shown.innerHTML) shown.replaceWith(fresh);
    connection.textContent = '';
  };
  const again = () => renew().catch(() => { connection.textContent = 'The server does not answer.'; }).finally(() => setTimeout(again, 1000));
  again();
})();
