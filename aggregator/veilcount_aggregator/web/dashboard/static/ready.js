// What a page does once it is loaded: `document.body.dataset.ready`.
(() => {
  'use strict';
  const menu = document.querySelector('.menu');
  const narrow = matchMedia('(max-width: 60rem)');
  const follow = () => { if (menu) menu.open = !narrow.matches; }; // a wide window has no button to open it
  follow();
  narrow.addEventListener('change', follow);
  const tab = document.querySelector('.tabs [aria-current]');
  if (tab) tab.scrollIntoView({ block: 'nearest', inline: 'center' });
  // a page that takes a moment is on its way; one that the browser kept is at rest again
  document.addEventListener('submit', (event) => event.submitter && event.submitter.setAttribute('aria-busy', 'true'));
  window.addEventListener('pageshow', () => document.querySelectorAll('[aria-busy]').forEach((each) => each.removeAttribute('aria-busy')));
  document.body.dataset.ready = 'yes';
})();
