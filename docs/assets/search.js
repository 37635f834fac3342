// The theme appends a wildcard to every word of a query, so that "is" in a pasted message finds
// "isolation". Here whole words are searched, except for the last one, which may not be typed to its
// end. A query with the search's own syntax (quotes, + and - before words) is left as it is.
const SHORT = 4; // words
const QUERY = 2; // SearchMessageType.QUERY of mkdocs-material
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

const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...rest) {
  if (message && message.type === QUERY && typeof message.data === 'string') {
    message = { ...message, data: wholeWords(message.data) };
  }
  return post.call(this, message, ...rest);
};
