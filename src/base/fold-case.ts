/**
 * Runs of letters of Latin, Greek, Cyrillic, Armenian, Georgian and full width. Each version of
 * Unicode adds letters to other ranges, which one engine has a case of and another has not. Whether
 * a sigma ends a word depends on the version, too: each is a run of its own.
 */
const RUN = /[Σς]|[ -\u03A1\u03A4-\u03C1\u03C3-\u058F\u10A0-\u10FF\u1C90-\u1CBF\u1E00-\u1FFF\uFF21-\uFF5A]+/g
const FOLD = `(run) => (run === 'Σ' || run === 'ς' ? 'σ' : run.toLowerCase())`

/** Small letters, the same in each engine of JavaScript: letters of other scripts stay. */
export const foldCase = (text: string): string => text.replaceAll(RUN, (run) => (run === 'Σ' || run === 'ς' ? 'σ' : run.toLowerCase()))

/** The same in code: `text` is an expression. */
export const foldCaseSource = (text: string): string => `${text}.replace(${String(RUN)}, ${FOLD})`
