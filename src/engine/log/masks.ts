import { hidesNothing, quoteHider, type SecretHider } from '../../base/secrets.ts'
import { mapJson } from '../../base/json.ts'
import type { NewEntry } from '../../contract/log-entry.ts'
import { maskedTexts, plainMask, redactor, type TextMask } from '../../traces/redact.ts'

/** Traces whose values are remembered, and values of each. */
const MOST_TRACES = 200
const MOST_VALUES = 200
const MOST_AT_ONCE = 1000
/** Shorter values occur in other texts by chance; longer ones cost too much to search. */
const SHORTEST = 4
const LONGEST = 10_000

/** Fields that identify things, which a value chosen by a publisher must not change. */
const IDENTIFIES =
  /(?:^|_)(?:id|ids|hash|kind|at|seq|seqs|by|type)$|^(?:prompt|basis|tool|agent|model|status|state|via|verdict|stage|call|considered|act|key|name)$/

type Known = { values: Set<string>; hider: SecretHider | null }

/**
 * Masks fields by their names. Remembers their values by trace: a model or a tool may quote them in
 * the texts of the same trace.
 */
export class Masks {
  readonly #mask: TextMask
  readonly #traces = new Map<string, Known>()
  #redact: ReturnType<typeof redactor>
  /** The texts that are masked in each event. */
  #events = new WeakMap<object, readonly string[]>()

  constructor(mask: TextMask = plainMask) {
    this.#mask = mask
    this.#redact = redactor([], mask)
  }

  /** Sets the names of fields that are masked beside the usual ones. */
  redact(fields: readonly string[]): void {
    this.#redact = redactor(fields, this.#mask)
    this.#events = new WeakMap()
  }

  clean(value: unknown, trace_id?: string): unknown {
    const clean = this.#redact(value)
    if (clean !== value && trace_id !== undefined) this.#learn(trace_id, maskedTexts(value, clean))
    return clean
  }

  /** Texts of the trace may quote these events. */
  mayQuote(trace_id: string, events: readonly object[]): void {
    for (const event of events) {
      const texts = this.#textsOf(event)
      if (texts.length > 0) this.#learn(trace_id, texts)
    }
  }

  /** Masks what these events and all remembered traces redact, of which the newest count. */
  ofAll(events: readonly object[]): SecretHider {
    const traces = Array.from(this.#traces.values(), ({ values }) => [...values])
    const texts = [...events.map((event) => this.#textsOf(event)), ...traces].flat()
    return quoteHider([...new Set(texts)].slice(-MOST_AT_ONCE), SHORTEST, this.#mask)
  }

  #textsOf(event: object): readonly string[] {
    let texts = this.#events.get(event)
    if (!texts) this.#events.set(event, (texts = maskedTexts(event, this.#redact(event))))
    return texts
  }

  #learn(trace_id: string, texts: readonly string[]): void {
    const found = texts.filter(({ length }) => length >= SHORTEST && length <= LONGEST)
    if (found.length === 0) return
    const known = this.#traces.get(trace_id) ?? { values: new Set(), hider: null }
    for (const text of found) {
      if (known.values.has(text) || known.values.size >= MOST_VALUES) continue
      known.values.add(text)
      known.hider = null
    }
    this.#traces.delete(trace_id)
    this.#traces.set(trace_id, known)
    const [oldest] = this.#traces.keys()
    if (this.#traces.size > MOST_TRACES && oldest !== undefined) this.#traces.delete(oldest)
  }

  /** Masks the values of a trace. */
  of(trace_id: string): SecretHider {
    const known = this.#traces.get(trace_id)
    return known ? (known.hider ??= quoteHider([...known.values], SHORTEST, this.#mask)) : hidesNothing
  }

  /** Masks in the texts of an entry, not in what identifies it. */
  entry(entry: NewEntry): NewEntry {
    const hider = this.of(entry.trace_id)
    // Most traces redact nothing: their entries, which may be long, are not written out to search.
    if (hider === hidesNothing || !hider.finds(JSON.stringify(entry))) return entry
    const path: (string | number)[] = []
    const isKept = () => IDENTIFIES.test(String(path.findLast((name) => typeof name === 'string')))
    return mapJson(entry, (value) => (typeof value === 'string' && !isKept() ? hider.text(value) : value), { path }) as NewEntry
  }
}
