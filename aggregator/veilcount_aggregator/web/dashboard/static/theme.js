// Light or dark: the system's choice, unless the reader made another, which this browser keeps.
(() => {
  'use strict';
  const kept = localStorage.getItem('theme');
  if (kept) document.documentElement.dataset.theme = kept;
  const system = matchMedia('(prefers-color-scheme: dark)');
  const dark = () => (document.documentElement.dataset.theme || (system.matches ? 'dark' : 'light')) === 'dark';
  const show = (button) => button.setAttribute('aria-pressed', String(dark()));
  document.addEventListener('DOMContentLoaded', () => {
    const button = document.getElementById('theme');
    if (!button) return;
    show(button);
    button.addEventListener('click', () => {
      const chosen = dark() ? 'light' : 'dark';
      document.documentElement.dataset.theme = chosen;
      localStorage.setItem('theme', chosen);
      show(button);
    });
    system.addEventListener('change', () => show(button));
  });
})();
