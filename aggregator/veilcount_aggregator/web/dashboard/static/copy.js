// Copies what a field or a block of text holds; where the browser does not allow it, selects it, for the reader to copy.
(() => {
  'use strict';
  const select = (from) => {
    if (from.select) { from.focus(); from.select(); return; }
    getSelection().selectAllChildren(from);
  };
  document.querySelectorAll('[data-copy]').forEach((button) => {
    const label = button.textContent;
    button.setAttribute('aria-live', 'polite');
    button.addEventListener('click', async () => {
      const from = document.getElementById(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(from.value === undefined ? from.textContent : from.value);
        button.textContent = 'Copied';
      } catch {
        select(from);
        button.textContent = 'Selected: copy it';
      }
      setTimeout(() => { button.textContent = label; }, 3000);
    });
  });
})();
