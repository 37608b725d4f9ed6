// The page is ready once every chart is drawn: `document.body.dataset.ready` says so.
(() => {
  'use strict';
  const menu = document.querySelector('.menu');
  if (menu && matchMedia('(max-width: 60rem)').matches) menu.open = false;
  const drawn = window.veilcountDrawn || [];
  Promise.allSettled(drawn).then((ends) => {
    const failed = ends.filter((each) => each.status === 'rejected');
    failed.forEach((each) => console.error(each.reason));
    document.body.dataset.ready = failed.length ? 'failed' : 'yes';
  });
})();
