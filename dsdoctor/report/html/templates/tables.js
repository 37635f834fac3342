for (const tools of document.querySelectorAll('.tools[data-for]')) {
  const table = document.getElementById(tools.dataset.for);
  const body = table.tBodies[0];
  const limit = Number(tools.dataset.limit);
  const said = tools.querySelector('output');
  const more = tools.querySelector('button');
  let rows = Array.from(body.rows);
  let words = null;
  let wanted = [];
  let all = false;
  const show = () => {
    let found = 0;
    for (const row of rows) {
      const fits = wanted.every((word) => words.get(row).includes(word));
      found += fits;
      row.hidden = !fits;
      row.classList.toggle('later', fits && !all && found > limit);
    }
    said.textContent = (wanted.length ? found + ' of ' : '') + rows.length + ' rows' +
      (!all && found > limit ? ', the first ' + limit + ' are shown' : '');
    more.hidden = all || found <= limit;
    more.textContent = 'Show all ' + found;
  };
  tools.querySelector('input').addEventListener('input', (event) => {
    words ??= new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
    wanted = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    show();
  });
  more.addEventListener('click', () => { all = true; show(); });
  const order = new Intl.Collator('en', { numeric: true });
  Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener('click', () => {
      const down = head.getAttribute('aria-sort') === 'ascending';
      for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      const keyed = rows.map((row, place) => [row.cells[column].textContent, place]);
      keyed.sort((a, b) => (down ? -1 : 1) * order.compare(a[0], b[0]) || a[1] - b[1]);
      rows = keyed.map((pair) => rows[pair[1]]);
      body.append(...rows);
      show();
    });
  });
  show();
  tools.hidden = false;
}
