// Takes the secret from behind the #, removes it from the address and the history, and posts it.
(() => {
  'use strict';
  const secret = location.hash.slice(1);
  history.replaceState(null, '', location.pathname);
  if (!secret) {
    document.getElementById('says').textContent = 'This address has no link in it. Copy all of the line that was printed.';
    return;
  }
  document.getElementById('link').value = secret;
  document.getElementById('entering').submit();
})();
