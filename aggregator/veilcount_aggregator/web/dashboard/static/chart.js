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

  const axis = (description, more = {}) => ({
    title: { text: description.title || '', font: { size: 13 }, standoff: 12 }, type: description.type || '-', tickformat: description.format || '',
    ticksuffix: description.suffix || '', range: description.range || undefined, zeroline: false, automargin: true, fixedrange: true,
    gridcolor: colour('line'), linecolor: colour('line'), tickfont: { size: 12 }, hoverformat: description.format || '',
    ...(description.ticks ? { tickmode: 'array', tickvals: description.ticks.map(([at]) => at), ticktext: description.ticks.map(([, text]) => text) } : {}), ...more,
  });

  const layout = (description, more = {}) => ({
    font: { family: getComputedStyle(document.body).fontFamily, color: colour('ink'), size: 13 },
    paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', margin: { l: 8, r: 16, t: 8, b: 8 },
    height: description.height || 360, hoverlabel: { font: { size: 13 } }, dragmode: false,
    legend: { orientation: 'h', y: 1, x: 0, yanchor: 'bottom', xanchor: 'left' }, showlegend: (description.parts || []).length > 1,
    xaxis: axis(description.x || {}), yaxis: axis(description.y || {}), shapes: (description.marks || []).map(mark), annotations: (description.marks || []).filter((m) => m.text).map((m) => note(m, description)),
    ...more,
  });
  const mark = (description) => ({
    type: 'line', xref: description.x === undefined ? 'paper' : 'x', yref: description.y === undefined ? 'paper' : 'y', layer: 'below',
    x0: description.x === undefined ? 0 : description.x, x1: description.x === undefined ? 1 : description.x,
    y0: description.y === undefined ? 0 : description.y, y1: description.y === undefined ? 1 : description.y,
    line: { color: colour('soft'), width: 1, dash: 'dot' },
  });
  const at = (place, axis) => (axis && axis.type === 'log' ? Math.log10(place) : place); // as Plotly expects of a note alone
  const note = (description, chart) => ({
    text: description.text, showarrow: false, font: { size: 11, color: colour('soft') }, xanchor: 'left', yanchor: 'top', xshift: 5,
    x: description.x === undefined ? 0 : at(description.x, chart.x), y: description.y === undefined ? 1 : at(description.y, chart.y),
    xref: description.x === undefined ? 'paper' : 'x', yref: description.y === undefined ? 'paper' : 'y',
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

  // Horizontal bars with whiskers, the first on top.
  const bars = (description) => {
    const parts = description.parts;
    const traces = parts.map((each, place) => ({
      type: 'bar', orientation: 'h', name: each.name || '', y: description.labels, x: each.values, customdata: each.hover,
      hovertemplate: '%{customdata}<extra></extra>', marker: { color: rgba(hue(each, place), 0.35), line: { width: 0 } },
      error_x: { type: 'data', symmetric: false, array: each.high.map((h, i) => h - each.values[i]), arrayminus: each.low.map((l, i) => each.values[i] - l),
        color: colour(hue(each, place)), thickness: 2.2, width: 5 },
    }));
    const height = Math.max(170, 90 + description.labels.length * (parts.length > 1 ? 20 * parts.length + 12 : 34));
    return [traces, layout({ ...description, height }, {
      barmode: 'group', bargap: 0.42, showlegend: parts.length > 1,
      yaxis: axis({}, { autorange: 'reversed', type: 'category', gridcolor: 'rgba(0,0,0,0)', ticklabelstandoff: 8, ...named(description.labels) }),
      xaxis: axis(description.x || {}, { zeroline: true, zerolinecolor: colour('soft') }),
    })];
  };

  // Vertical columns, without whiskers: counts, which have none.
  const columns = (description) => [description.parts.map((each, place) => ({
    type: 'bar', name: each.name || '', x: description.labels, y: each.values, customdata: each.hover, hovertemplate: '%{customdata}<extra></extra>',
    marker: { color: rgba(hue(each, place), 0.75) },
  })), layout(description, { bargap: 0.12, barmode: description.stacked ? 'stack' : 'group', xaxis: axis(description.x || {}, { gridcolor: 'rgba(0,0,0,0)' }) })];

  // Lines that are computed, not estimated: without bands.
  const lines = (description) => {
    const traces = description.parts.map((each, place) => {
      const name = hue(each, place);
      return {
        type: 'scatter', mode: each.dots === false ? 'lines' : 'lines+markers', name: each.name || '', x: each.x, y: each.values,
        customdata: each.hover, hovertemplate: each.hover ? '%{customdata}<extra></extra>' : undefined,
        line: { color: colour(name), width: 2.2, dash: each.dash || 'solid', shape: each.step ? 'hv' : 'linear' },
        marker: { size: 8, color: colour(name), line: { color: colour(name), width: 2 } },
      };
    });
    return [traces, layout(description)];
  };

  const KINDS = { bars, columns, lines };

  const draw = async (place) => {
    const description = JSON.parse(document.getElementById(place.dataset.chart).textContent, plain);
    const [traces, look] = KINDS[description.kind](description);
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
