// The page is ready once every chart is drawn: see `document.body.dataset.ready`.
(() => {
  'use strict';
  const menu = document.querySelector('.menu');
  if (menu && matchMedia('(max-width: 60rem)').matches) menu.open = false;
  // a page that takes a moment is on its way; one that the browser kept is at rest again
  document.addEventListener('submit', (event) => event.submitter && event.submitter.setAttribute('aria-busy', 'true'));
  window.addEventListener('pageshow', () => document.querySelectorAll('[aria-busy]').forEach((each) => each.removeAttribute('aria-busy')));
  const drawn = window.veilcountDrawn || [];
  Promise.allSettled(drawn).then((ends) => {
    const failed = ends.filter((each) => each.status === 'rejected');
    failed.forEach((each) => console.error(each.reason));
    document.body.dataset.ready = failed.length ? 'failed' : 'yes';
  });
})();
