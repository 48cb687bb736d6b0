// Search results: proofs, tables of measurements and the history come after the pages that answer questions.
// All numbers but `score` are Sphinx's own.
var Scorer = {
  score: ([page, , , , score]) =>
    /^(generated\/(proofs\/|api\/alphabetical)|project\/|verdicts|coverage|mechanisms)/.test(page) ? score - 10 : score,
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
