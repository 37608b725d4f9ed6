// Takes the secret from the fragment, removes it from the address and the history, and posts it.
(() => {
  'use strict';
  const secret = location.hash.slice(1);
  history.replaceState(null, '', location.pathname);
  if (!secret) {
    document.getElementById('status').textContent = 'This address has no link secret. Copy the whole line that was printed, or print a new one: veilcount keys link';
    return;
  }
  document.getElementById('link').value = secret;
  document.getElementById('enter').submit();
})();
