for (const block of document.querySelectorAll('.command')) {
  const button = document.createElement('button');
  const command = block.querySelector('pre');
  button.type = 'button';
  button.textContent = 'Copy';
  button.addEventListener('click', async () => {
    let copied = true;
    try {
      await navigator.clipboard.writeText(command.textContent.trim());
    } catch {
      getSelection().selectAllChildren(command);
      copied = document.execCommand('copy');
    }
    button.textContent = copied ? 'Copied' : 'Press Ctrl+C';
    setTimeout(() => { button.textContent = 'Copy'; }, 2000);
  });
  block.append(button);
}
