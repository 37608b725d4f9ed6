// Draws what charts.py describes. Descriptions hold figures and words; colours and sizes are of the style sheet,
// so that a chart follows the reader's theme.
(() => {
  'use strict';
  const CONFIG = {
    displayModeBar: false, responsive: true, showSendToCloud: false, plotlyServerURL: '', displaylogo: false, scrollZoom: false,
  };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const rgba = (name, part) => {
    const hex = colour(name).slice(1);
    const [r, g, b] = [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));
    return `rgba(${r}, ${g}, ${b}, ${part})`;
  };
  const HUES = ['one', 'two', 'three', 'four', 'five', 'six', 'seven'];
  const hue = (each, place) => each.hue || HUES[place % HUES.length];

  const axis = (given, more = {}) => ({
    title: { text: given.title || '', font: { size: 13 }, standoff: 12 }, type: given.type || '-', tickformat: given.format || '',
    ticksuffix: given.suffix || '', range: given.range || undefined, zeroline: false, automargin: true, fixedrange: true,
    gridcolor: colour('line'), linecolor: colour('line'), tickfont: { size: 12 }, hoverformat: given.format || '',
    ...(given.ticks ? { tickmode: 'array', tickvals: given.ticks.map(([at]) => at), ticktext: given.ticks.map(([, text]) => text) } : {}), ...more,
  });

  const layout = (given, more = {}) => ({
    font: { family: getComputedStyle(document.body).fontFamily, color: colour('ink'), size: 13 },
    paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', margin: { l: 8, r: 16, t: 8, b: 8 },
    height: given.height || 360, hoverlabel: { font: { size: 13 } }, dragmode: false,
    legend: { orientation: 'h', y: 1, x: 0, yanchor: 'bottom', xanchor: 'left' }, showlegend: (given.parts || []).length > 1,
    xaxis: axis(given.x || {}), yaxis: axis(given.y || {}), shapes: (given.marks || []).map(mark), annotations: (given.marks || []).filter((m) => m.text).map((m) => note(m, given)),
    ...more,
  });
  const mark = (given) => ({
    type: 'line', xref: given.x === undefined ? 'paper' : 'x', yref: given.y === undefined ? 'paper' : 'y', layer: 'below',
    x0: given.x === undefined ? 0 : given.x, x1: given.x === undefined ? 1 : given.x,
    y0: given.y === undefined ? 0 : given.y, y1: given.y === undefined ? 1 : given.y,
    line: { color: colour('soft'), width: 1, dash: 'dot' },
  });
  const at = (place, axis) => (axis && axis.type === 'log' ? Math.log10(place) : place); // what Plotly wants of a note alone
  const note = (given, chart) => ({
    text: given.text, showarrow: false, font: { size: 11, color: colour('soft') }, xanchor: 'left', yanchor: 'top', xshift: 5,
    x: given.x === undefined ? 0 : at(given.x, chart.x), y: given.y === undefined ? 1 : at(given.y, chart.y),
    xref: given.x === undefined ? 'paper' : 'x', yref: given.y === undefined ? 'paper' : 'y',
  });

  // Plotly takes some marks in a text for HTML; a value that has them in its name is shown as it is.
  const MARKS = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };
  const plain = (_, text) => (typeof text === 'string' ? text.replace(/[&<>]/g, (mark) => MARKS[mark]) : text);
  const bare = (text) => Object.entries(MARKS).reduceRight((left, [mark, escaped]) => left.replaceAll(escaped, mark), text);

  // A long name is cut where it would leave the bars no room; the table has all of it.
  const cut = (label, most) => {
    const whole = bare(String(label));
    return whole.length > most ? plain('', `${whole.slice(0, most - 1)}…`) : label;
  };
  const named = (labels) => {
    const most = window.innerWidth < 700 ? 16 : 40;
    return { tickmode: 'array', tickvals: labels, ticktext: labels.map((label) => cut(label, most)) };
  };

  // Horizontal bars with whiskers, the first on top; a wider, paler whisker behind may show another interval.
  const bars = (given) => {
    const parts = given.parts;
    const traces = parts.map((each, place) => ({
      type: 'bar', orientation: 'h', name: each.name || '', y: given.labels, x: each.values, customdata: each.hover,
      hovertemplate: '%{customdata}<extra></extra>', marker: { color: rgba(hue(each, place), 0.35), line: { width: 0 } },
      error_x: { type: 'data', symmetric: false, array: each.high.map((h, i) => h - each.values[i]), arrayminus: each.low.map((l, i) => each.values[i] - l),
        color: colour(hue(each, place)), thickness: 2.2, width: 5 },
    }));
    const wider = parts.filter((each) => each.outer).map((each, place) => ({
      type: 'scatter', mode: 'lines', name: each.outer.name, y: [].concat(...given.labels.map((l) => [l, l, null])), hoverinfo: 'skip',
      x: [].concat(...each.outer.low.map((l, i) => [l, each.outer.high[i], null])), line: { color: rgba(hue(each, place), 0.28), width: 9 },
    }));
    const height = Math.max(170, 90 + given.labels.length * (parts.length > 1 ? 20 * parts.length + 12 : 34));
    return [[...wider, ...traces], layout({ ...given, height }, {
      barmode: 'group', bargap: 0.42, showlegend: parts.length > 1 || wider.length > 0,
      yaxis: axis({}, { autorange: 'reversed', type: 'category', gridcolor: 'rgba(0,0,0,0)', ticklabelstandoff: 8, ...named(given.labels) }),
      xaxis: axis(given.x || {}, { zeroline: true, zerolinecolor: colour('soft') }),
    })];
  };

  // Vertical columns, without whiskers: counts, which have none.
  const columns = (given) => [given.parts.map((each, place) => ({
    type: 'bar', name: each.name || '', x: given.labels, y: each.values, customdata: each.hover, hovertemplate: '%{customdata}<extra></extra>',
    marker: { color: rgba(hue(each, place), 0.75) },
  })), layout(given, { bargap: 0.12, barmode: given.stacked ? 'stack' : 'group', xaxis: axis(given.x || {}, { gridcolor: 'rgba(0,0,0,0)' }) })];

  // Lines with bands. What is unfinished (`open`, places) is drawn hollow and dashed.
  const lines = (given) => {
    const traces = given.parts.flatMap((each, place) => {
      const name = hue(each, place);
      const open = new Set(each.open || []);
      const band = each.low ? [
        { type: 'scatter', mode: 'lines', x: each.x, y: each.low, line: { width: 0 }, hoverinfo: 'skip', showlegend: false, legendgroup: String(place) },
        { type: 'scatter', mode: 'lines', x: each.x, y: each.high, line: { width: 0 }, fill: 'tonexty', fillcolor: rgba(name, 0.16), hoverinfo: 'skip', showlegend: false, legendgroup: String(place) },
      ] : [];
      return [...band, {
        type: 'scatter', mode: each.dots === false ? 'lines' : 'lines+markers', name: each.name || '', legendgroup: String(place), x: each.x, y: each.values,
        customdata: each.hover, hovertemplate: each.hover ? '%{customdata}<extra></extra>' : undefined,
        line: { color: colour(name), width: 2.2, dash: each.dash || 'solid', shape: each.step ? 'hv' : 'linear' },
        marker: { size: 8, color: each.x.map((_, i) => (open.has(i) ? colour('paper') : colour(name))), line: { color: colour(name), width: 2 } },
      }];
    });
    return [traces, layout(given)];
  };

  const KINDS = { bars, columns, lines };

  const draw = async (place) => {
    const given = JSON.parse(document.getElementById(place.dataset.chart).textContent, plain);
    const [traces, look] = KINDS[given.kind](given);
    const wait = place.querySelector('.wait');
    if (wait) wait.remove();
    place.style.minHeight = `${look.height}px`;
    await Plotly.react(place, traces, look, CONFIG);
  };

  const save = (button) => Plotly.downloadImage(document.getElementById(button.dataset.save), {
    format: 'png', width: 1200, height: 675, scale: 2, filename: `veilcount-${button.dataset.save}`,
  });

  const places = [...document.querySelectorAll('[data-chart]')];
  window.veilcountDrawn = places.map(draw);
  document.addEventListener('theme', () => places.forEach(draw));
  document.querySelectorAll('[data-save]').forEach((button) => button.addEventListener('click', () => save(button)));
})();
