// Comfort for the planner: hides the fields that the chosen question does not have.
(() => {
  'use strict';
  const kind = document.getElementById('kind');
  const show = () => document.querySelectorAll('[data-of]').forEach((each) => { each.hidden = each.dataset.of !== kind.value; });
  kind.addEventListener('change', show);
  show();
})();
