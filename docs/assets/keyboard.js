// What scrolls sideways is reached with the Tab key: a block of code, a wide table.
document.addEventListener('DOMContentLoaded', () => {
  const wide = document.querySelectorAll('article pre > code, article .md-typeset__scrollwrap');
  for (const one of wide) if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
});
