// Shows the text of a mark when it is pointed at or has the focus; arrow keys lead from mark to mark. Saves a chart as a picture.
(() => {
  'use strict';
  const readout = document.createElement('p');
  readout.className = 'readout';
  readout.hidden = true;
  readout.setAttribute('aria-hidden', 'true'); // a screen reader reads the mark's own name
  document.body.append(readout);

  const hide = () => { readout.hidden = true; };
  const show = (mark) => {
    readout.textContent = mark.getAttribute('aria-label');
    readout.hidden = false;
    const box = mark.lastElementChild.getBoundingClientRect(), most = document.documentElement.clientWidth - readout.offsetWidth - 4;
    readout.style.left = `${scrollX + Math.max(4, Math.min(most, box.left + (box.width - readout.offsetWidth) / 2))}px`;
    readout.style.top = `${scrollY + (box.top > readout.offsetHeight + 8 ? box.top - readout.offsetHeight - 8 : box.bottom + 8)}px`;
  };
  const at = (act) => (event) => { const mark = event.target.closest('.area .mark'); if (mark) act(mark); };
  document.addEventListener('pointerover', at(show));
  document.addEventListener('pointerout', at(hide));
  document.addEventListener('focusin', at(show));
  document.addEventListener('focusout', at(hide));
  document.addEventListener('keydown', (event) => { if (event.key === 'Escape') hide(); });

  // A chart is one stop of the Tab key. Titles are for readers without scripts: a browser would show both.
  const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };
  const enter = (area) => {
    const marks = [...area.querySelectorAll('.mark')];
    if (!marks.length) return;
    area.setAttribute('role', 'group');
    marks.forEach((mark, index) => {
      const title = mark.querySelector('title');
      mark.setAttribute('role', 'img');
      mark.setAttribute('aria-label', title.textContent);
      mark.setAttribute('tabindex', index ? '-1' : '0');
      title.remove();
    });
    area.addEventListener('keydown', (event) => {
      const step = STEPS[event.key];
      if (!step) return;
      const from = marks.indexOf(document.activeElement), to = Math.max(0, Math.min(marks.length - 1, from + step));
      marks.forEach((mark, index) => mark.setAttribute('tabindex', index === to ? '0' : '-1'));
      marks[to].focus();
      event.preventDefault();
    });
  };
  document.querySelectorAll('.area').forEach(enter);

  // The picture: the drawings of a chart with the colours they have here, and its texts.
  const MARGIN = 12;
  const NAMESPACE = 'http://www.w3.org/2000/svg';
  const LOOK = ['display', 'fill', 'font-family', 'font-size', 'opacity', 'stroke', 'stroke-dasharray', 'stroke-linecap', 'stroke-width', 'vector-effect'];
  const element = (name, attributes) => {
    const created = document.createElementNS(NAMESPACE, name);
    Object.entries(attributes).forEach(([key, value]) => created.setAttribute(key, value));
    return created;
  };
  const drawing = (svg, frame) => {
    const box = svg.getBoundingClientRect(), copy = svg.cloneNode(true);
    const copies = [copy, ...copy.querySelectorAll('*')];
    [svg, ...svg.querySelectorAll('*')].forEach((from, index) => {
      const look = getComputedStyle(from);
      LOOK.forEach((key) => copies[index].setAttribute(key, look.getPropertyValue(key)));
    });
    Object.entries({ x: box.left - frame.left, y: box.top - frame.top, width: box.width, height: box.height, overflow: 'visible' })
      .forEach(([key, value]) => copy.setAttribute(key, value));
    return copy;
  };
  const text = (from, frame) => {
    const range = document.createRange(), look = getComputedStyle(from);
    range.selectNodeContents(from);
    const box = range.getBoundingClientRect();
    const written = element('text', { x: box.left - frame.left, y: box.bottom - frame.top - box.height / 4, fill: look.color, 'font-family': look.fontFamily, 'font-size': look.fontSize });
    written.textContent = from.textContent;
    return written;
  };
  const picture = (plot) => {
    const box = plot.getBoundingClientRect();
    const frame = { left: box.left - MARGIN, top: box.top - MARGIN, width: box.width + 2 * MARGIN, height: box.height + 2 * MARGIN };
    const whole = element('svg', { width: frame.width, height: frame.height });
    whole.append(element('rect', { width: '100%', height: '100%', fill: getComputedStyle(plot.closest('figure')).backgroundColor }));
    plot.querySelectorAll('svg:not(svg svg)').forEach((svg) => whole.append(drawing(svg, frame)));
    plot.querySelectorAll('.text').forEach((label) => whole.append(text(label, frame)));
    return whole;
  };
  const save = async (button) => {
    const whole = picture(document.getElementById(button.dataset.save));
    const image = new Image(), canvas = document.createElement('canvas');
    image.src = `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(whole))}`;
    await image.decode();
    [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
    canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
    const link = document.createElement('a');
    link.href = canvas.toDataURL('image/png');
    link.download = `veilcount-${button.dataset.save}.png`;
    link.click();
  };
  document.querySelectorAll('[data-save]').forEach((button) => button.addEventListener('click', () => save(button)));
})();
