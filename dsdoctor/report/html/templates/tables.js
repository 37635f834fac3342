for (const tools of document.querySelectorAll('.tools[data-for]')) {
  const table = document.getElementById(tools.dataset.for);
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const said = tools.querySelector('output');
  const words = rows.map((row) => row.textContent.toLowerCase());
  tools.querySelector('input').addEventListener('input', (event) => {
    const wanted = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, place) => {
      row.hidden = !wanted.every((word) => words[place].includes(word));
      shown += !row.hidden;
    });
    said.textContent = shown + ' of ' + rows.length + ' rows';
  });
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
      body.append(...keyed.map((pair) => rows[pair[1]]));
    });
  });
  tools.hidden = false;
}
