// What axe-core does not look at. Run in the page; returns a list of complaints.
const found = [];
const seen = (element) => {
  const box = element.getBoundingClientRect();
  const style = getComputedStyle(element);
  return box.width > 1 && box.height > 1 && style.visibility !== 'hidden' && style.display !== 'none' && element.checkVisibility();
};
const short = (element) => `<${element.tagName.toLowerCase()}${element.id ? ` id=${element.id}` : ''}${element.className && element.className.baseVal === undefined ? ` class=${element.className}` : ''}>`;

// -- structure --------------------------------------------------------------------------------
if (!document.title.replace(' · veilcount', '').trim()) found.push('the document has no title');
if (document.querySelectorAll('h1').length > 1) found.push('more than one h1');
const ids = [...document.querySelectorAll('[id]')].map((each) => each.id).filter((id) => !id.startsWith('clip') && !/^(top)?def/.test(id));
ids.filter((id, place) => ids.indexOf(id) !== place).forEach((id) => found.push(`the id ${id} is there twice`));
document.querySelectorAll('[aria-labelledby], [aria-describedby]').forEach((each) => ['aria-labelledby', 'aria-describedby'].forEach((key) => {
  (each.getAttribute(key) || '').split(' ').filter(Boolean).forEach((id) => { if (!document.getElementById(id)) found.push(`${short(each)}: no ${id}`); });
}));
document.querySelectorAll('.scroll').forEach((each) => { if (each.tabIndex !== 0 || !each.getAttribute('aria-label')) found.push('a region that scrolls has no name or no place for the keyboard'); });

// a placeholder is a name for axe; it is gone once something is typed
document.querySelectorAll('input:not([type=hidden]), select, textarea').forEach((each) => {
  if (![...each.labels].some((label) => label.textContent.trim()) && !each.getAttribute('aria-label')) found.push(`${short(each)} has no label`);
});

// -- pictures and tables ----------------------------------------------------------------------
document.querySelectorAll('figure.chart').forEach((each) => { if (!each.querySelector('details table tbody tr')) found.push(`no table behind ${each.querySelector('.plot').id}`); });
document.querySelectorAll('.plot').forEach((each) => { if (!each.querySelector('.mark')) found.push('nothing of a chart is read out'); });
document.querySelectorAll('table').forEach((each) => {
  if (!each.querySelector('thead th[scope=col]')) found.push('a table has no heads');
  const heads = each.querySelectorAll('thead th').length;
  [...each.querySelectorAll('tbody tr')].forEach((row) => { if ([...row.cells].reduce((sum, cell) => sum + cell.colSpan, 0) !== heads) found.push(`a row has not ${heads} cells: ${row.textContent.trim().slice(0, 60)}`); });
});

// each label of a drawing can be read: a border of its box, which letters seldom reach, may overlap
document.querySelectorAll('svg').forEach((drawing) => {
  const boxes = [...drawing.querySelectorAll(':scope > text')].filter(seen).map((each) => [each.textContent, each.getBoundingClientRect()]);
  boxes.forEach(([text, box], place) => boxes.slice(0, place).forEach(([other, its]) => {
    if (box.left + 2 < its.right && its.left + 2 < box.right && box.top + 3 < its.bottom && its.top + 3 < box.bottom) found.push(`labels overlap: ${other}, ${text}`);
  }));
});

// -- contrast, as WCAG counts it, in drawings too, which axe leaves out -----------------------
const parse = (text) => {
  const numbers = (text.match(/[\d.]+/g) || []).map(Number);
  return { rgb: numbers.slice(0, 3), alpha: numbers.length > 3 ? numbers[3] : 1 };
};
const over = (top, below) => top.rgb.map((each, i) => each * top.alpha + below[i] * (1 - top.alpha));
const grounds = new Map([[null, { below: [255, 255, 255], part: 1 }]]);
const ground = (element) => {
  if (!grounds.has(element)) {
    const style = getComputedStyle(element);
    const behind = ground(element.parentElement);
    grounds.set(element, { below: over(parse(style.backgroundColor), behind.below), part: behind.part * Number(style.opacity) });
  }
  return grounds.get(element);
};
const light = (rgb) => {
  const [r, g, b] = rgb.map((each) => { const part = each / 255; return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (a, b) => { const [high, low] = [light(a), light(b)].sort((x, y) => y - x); return (high + 0.05) / (low + 0.05); };
const faint = new Set();
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || !seen(element) || element.closest('script, style, noscript, .skip, option')) continue;
  const style = getComputedStyle(element);
  const colour = parse(element.closest('svg') ? style.fill : style.color);
  const { below, part } = ground(element);
  const size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  const got = contrast(over({ rgb: colour.rgb, alpha: colour.alpha * part }, below), below);
  if (got < (large ? 3 : 4.5)) faint.add(`contrast ${got.toFixed(2)} of ${short(element)}: ${walker.currentNode.textContent.trim().slice(0, 40)}`);
}
found.push(...faint);

// -- overflow -------------------------------------------------------------------------------------
const beyond = document.documentElement.scrollWidth - document.documentElement.clientWidth;
if (beyond > 0) {
  const widest = [...document.querySelectorAll('main *')].filter((each) => each.getBoundingClientRect().right > innerWidth + 1 && !each.closest('.scroll, .tabs, pre, svg')).slice(0, 3);
  found.push(`${beyond} px are beyond the edge: ${widest.map(short).join(' ')}`);
}
return found;
