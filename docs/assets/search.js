// The theme appends a wildcard to every word of a query, so that "is" in a pasted message finds
// "isolation". Here whole words are searched, except for the last one, which may not be typed to its
// end. A query with the search's own syntax (quotes, + and - before words) is left as it is.
const SHORT = 4; // words
const QUERY = 2; // SearchMessageType.QUERY of mkdocs-material
const RESULT = 3; // SearchMessageType.RESULT
const SHORTEST = 4; // characters of a phrase
let asked = ''; // the query as it was typed
const SEPARATOR = /[^\p{L}\p{N}.]+|\.(?:so|py|cpp|cu|h|json|log|sh|ya?ml)(?![a-z0-9])|\.(?!\d)/u;
const COMMON = new Set(('a an and are as at be been by can could do does for from had has have if in into is it its ' +
  'may more no not of on or so such than that the then there this to too was were when which will with you your').split(' '));

function wholeWords(query) {
  if (/"|(^|\s)[+-]\w/.test(query)) return query;
  const words = query.split(SEPARATOR).map((word) => word.replace(/^\.+|\.+$/g, '')).filter(Boolean);
  const rare = words.filter((word) => !COMMON.has(word.toLowerCase()));
  const terms = rare.map((word, place) => (place === rare.length - 1 ? word : word + '^1'));
  // a few words, such as "CUDA out of memory", are those of a condition's sentence (its tag)
  if (rare.length <= SHORT) terms.push(...rare.map((word) => 'tags:' + word + '^3'));
  return terms.join(' ') || query;
}

// Words alone do not find a message: "Bus error" is in every page on PCIe. Pages that contain the query
// as it was typed come first, the others after them, each in the order of the index.
const plain = (text) => text.toLowerCase().replace(/\s+/g, ' ').trim();

function contains(pages, phrase) {
  const box = document.createElement('template');
  return pages.some((page) => {
    box.innerHTML = `${page.title} ${page.text}`; // a template runs nothing
    return plain(box.content.textContent).includes(phrase);
  });
}

function ranked(message) {
  const phrase = plain(asked.replace(/"/g, ''));
  if (!message || message.type !== RESULT || phrase.length < SHORTEST) return;
  const { items } = message.data;
  const first = new Set(items.filter((pages) => contains(pages, phrase)));
  items.sort((one, other) => first.has(other) - first.has(one));
}

// The theme has its listener before this file is run, so that the order is changed where it reads the message.
const read = Object.getOwnPropertyDescriptor(MessageEvent.prototype, 'data').get;
const seen = new WeakSet();
Object.defineProperty(MessageEvent.prototype, 'data', {
  configurable: true,
  enumerable: true,
  get() {
    const message = read.call(this);
    if (this.target instanceof Worker && !seen.has(this)) {
      seen.add(this);
      ranked(message);
    }
    return message;
  },
});

const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...rest) {
  if (message && message.type === QUERY && typeof message.data === 'string') {
    asked = message.data;
    message = { ...message, data: wholeWords(message.data) };
  }
  return post.call(this, message, ...rest);
};
