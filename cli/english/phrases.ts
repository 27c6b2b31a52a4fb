/** A wording that readers stumble over, and what to write instead. */
type Phrase = { pattern: RegExp; instead: string }

/** An opening noun clause has no noun: the reader cannot tell its subject. */
export const opening: Phrase = {
  pattern: /^(?:What|Whether|Who|Whoever|Whose|Whom|How|Of|One(?!-)|Those|That(?! is why)|Where)\b(?!.*\?)/,
  instead: 'name the subject: "The events that …", "True if …", "A row for each …"',
}

export const banned: readonly Phrase[] = [
  { pattern: /\bis none\b(?! of (?:the|these|those|its)\b)/i, instead: '"does not exist", "is invalid", "is missing"' },
  { pattern: /\banew\b/i, instead: '"again"' },
  { pattern: /\bat hand\b/i, instead: '"current"' },
  { pattern: /\bas it is told\b/i, instead: '"as instructed"' },
  { pattern: /\bgo(?:es)? on(?: with)?\b/i, instead: '"continues"' },
  { pattern: /\bso often in a row\b|\bso many (?:times )?in a row\b/i, instead: 'say the number of what' },
  { pattern: /\b(?:is|are|was|were|be|been) told\b/i, instead: '"receives", "is notified", "is replicated to"' },
  { pattern: /\bin capitals or not\b/i, instead: '"case-insensitive"' },
  { pattern: /\bcame of it\b/i, instead: '"the result"' },
  { pattern: /\b(?:stands?|stood) (?:there|in it|here)\b/i, instead: '"is", "is listed"' },
  { pattern: /\bstands? (?:once|twice)\b/i, instead: '"duplicate"' },
  { pattern: /\bneeds not\b/i, instead: '"need not", "does not have to"' },
  { pattern: /\blets? go of?\b/i, instead: '"drops", "releases"' },
  { pattern: /\bas good as none\b/i, instead: '"is ignored"' },
  { pattern: /\bis no (?:JSON|text|tool|name|event|list|number|request|upgrade|key|part)\b/i, instead: '"is not a …"' },
]

/** Pronouns that send the reader back for their noun. Texts on the wire keep theirs. */
export const pronouns: readonly Phrase[] = [
  { pattern: /\b(?:those|that) of\b/i, instead: 'the noun again: "the key of the tool"' },
  { pattern: /(?<!\bnot\b.*)\bbut for\b/i, instead: '"except for", "without"' },
  { pattern: /\b(?:he|his|him|himself)\b/i, instead: 'the person: "the buyer", "the operator"' },
]

/** The first banned wording in a text, or null. */
export function flawIn(text: string, phrases: readonly Phrase[] = banned): string | null {
  for (const { pattern, instead } of phrases) {
    const [found] = pattern.exec(text) ?? []
    if (found !== undefined) return `"${found}" is unclear: write ${instead}`
  }
  return null
}
