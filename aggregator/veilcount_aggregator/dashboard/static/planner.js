// Comfort for the planner: entries that do not matter for what is asked are put away.
(() => {
  'use strict';
  const kind = document.getElementById('kind');
  const show = () => document.querySelectorAll('[data-of]').forEach((each) => { each.hidden = each.dataset.of !== kind.value; });
  kind.addEventListener('change', show);
  show();
})();
