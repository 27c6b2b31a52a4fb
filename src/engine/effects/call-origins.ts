import { senderOf } from '../../contract/sender.ts'
import type { Event } from '../../core/event.ts'
import { isModelAsked } from '../../contract/model-asked.ts'
import type { EditedInputs, WaitingStep } from '../../contract/approval.ts'
import type { JsonFields } from '../../base/json.ts'
import type { EditedCall } from '../../contract/held-call.ts'
import type { Doubt, Origin, OriginMode } from '../../contract/origin.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import { oncePer } from '../../base/once-per.ts'
import type { ReflexVersion } from '../../contract/reflex.ts'
import { declaredDestinations, type GivenBefore, knownArguments, openArguments, type Planned } from '../../skills/plan/compile.ts'
import { onlyReads, shownName } from '../../tools/define-tool.ts'
import { destinationsIn, keysIn, readsAddress, readsNamed, type Destination } from '../../tools/origins/destinations.ts'
import { doubtsOf, mayDirect, namesOf, originOf, originText, type Sources, type Text, weakest } from '../../tools/origins/origin-of.ts'
import { isMask } from '../../traces/redact.ts'
import type { Reflexes } from '../reflexes/wiring.ts'
import type { EffectRequest } from './effect.ts'
import { fieldsIn, isFreeText, formOf, isUntrustedAt, WholeWords, KnownValues, NO_TEXT, wantedOf } from '../../tools/origins/values.ts'

/** Entries of the log from which the outputs of earlier calls are read, once after a start. */
const MOST_ENTRIES = 2000
const MOST_BYTES = 1_000_000
/** Entries that are read at once. One has at most some 100 kB. */
const AT_ONCE = 20
/** Events whose words count, the newest ones. */
const MOST_EVENTS = 100
/** Longer texts that are kept to say where a value stands. */
const MOST_TEXTS = 500
const TEXT_BYTES = 500_000
/** Texts that are searched where nobody waits for the answer. */
const OBSERVED_TEXTS = 20
/** Outputs of calls that are kept as they are. */
const MOST_UNREAD = 50
const SHORTEST_TEXT = 4
const MOST_EDITS = 50

type OriginsParts = Pick<Reflexes, 'database' | 'memory' | 'settings' | 'log' | 'programs' | 'toolbox'>
type Asked = Pick<EffectRequest, 'tool' | 'definition' | 'cause' | 'approved' | 'edited' | 'step' | 'turn_id' | 'words'>
type LoggedEffect = { kind: string; effect_id: string; tool: string; input?: unknown; output: unknown; edits?: EditedInputs }
/** The output of a call. */
type Given = Pick<EffectRequest, 'tool' | 'definition' | 'input'> & { output: unknown }
type Told = { doubt: Doubt; sentence: string }
type Judged = { found: readonly Told[]; named_by: Readonly<Record<string, string>> }
type LookUp = {
  now: (value: string | number, outputs?: boolean) => Origin | null
  later: Sources['trusted']
  events: () => readonly Event[]
}

/** Finds the origins of arguments, by the events, outputs and settings of the scope. */
export class CallOrigins {
  readonly #parts: OriginsParts
  readonly #known = new KnownValues()
  #unread: Given[] = []
  /** The words that people wrote into what they approved, the newest last. */
  #edits: WholeWords[] = []
  #texts: Text[] = []
  #texts_bytes = 0
  #has_read_log = false
  /** The tools that gave a text in words: what they give as JSON may be a stranger's, too. */
  readonly #give_words = new Set<string>()
  #past: { seq: number; events: readonly Event[] } = { seq: 0, events: [] }

  constructor(parts: OriginsParts) {
    this.#parts = parts
  }

  /** Keeps what a person wrote into what they approved: it is that person's word. */
  noteEdit(edits: EditedInputs): void {
    this.#edits = [...this.#edits, writtenIn(edits)].slice(-MOST_EDITS)
  }

  /** Keeps what a call gave. It is read when a destination is looked up. */
  note({ tool, definition, input }: Omit<Given, 'output'>, output: unknown): void {
    this.#unread.push({ tool, definition, input, output })
    if (this.#unread.length > MOST_UNREAD) this.#read()
  }

  /**
   * Reads what calls gave. What the agent wrote before the object started comes first: an output
   * that has it is an echo.
   */
  #read(): void {
    if (!this.#has_read_log) this.#readLog()
    for (const { tool, definition, input, output } of this.#unread.splice(0)) {
      if (givesWords(output)) this.#give_words.add(tool)
      const is_record = definition.untrusted === false || !(readsNamed(definition) || this.#give_words.has(tool))
      const as_text = is_record ? undefined : NO_TEXT
      this.#known.add(output, {
        tool,
        input,
        untrusted: definition.untrusted ?? readsAddress(definition),
        as_text,
        reads: onlyReads(definition),
      })
      for (const { path, value } of fieldsIn(output, { as_text })) {
        if (typeof value !== 'string' || value.length < SHORTEST_TEXT || isMask(value)) continue
        const said = path === '' ? `the text that \`${tool}\` returned` : `the text of \`${path}\`, which \`${tool}\` returned`
        this.#keepText({ in: tool, place: path === '' ? tool : `${tool}.${path}`, said, text: value })
      }
    }
  }

  /**
   * Judges the arguments of a call. `found`: destinations that no trusted origin names, none if a
   * person allowed the call. `named_by`: the trusted origins by path, for people who look at it.
   * Of a call that a person changed, they are what this person neither wrote nor was asked about.
   */
  judge({ tool, definition, cause, approved = false, edited, step, turn_id, words }: Asked, input: unknown): Judged {
    // The gate has judged the steps of a plan, and a person has set what the blackboard reads.
    const is_set = turn_id === null && !('by' in cause && cause.by.startsWith('dry:'))
    const is_allowed = (approved && !edited) || step || is_set
    const look_up = this.#lookUp(edited ? wordsOfPerson(edited) : this.#ownOf(cause), words ? [words] : [])
    const open = is_allowed ? [] : destinationsIn(input, definition).filter((one) => !edited || !isNamedBefore(one, edited))
    const found = this.#judged(tool, open, look_up).filter(({ doubt }) => !edited || !wasAsked(doubt, edited))
    // The log is read for a destination that is in doubt, and not to show who named other values.
    return { found, named_by: namesOf(fieldsIn(input), (value) => look_up.now(value, this.#has_read_log)) }
  }

  /** The constants of the reflex that calls, if a person wrote it. */
  #ownOf(cause: Asked['cause']): Sources['trusted'] {
    const code = 'by' in cause ? this.#codeOf(cause.by) : null
    return (value) => (code !== null && wordsOf(code).has(value) ? { from: 'manifest' } : null)
  }

  /**
   * The doubts about a plan, by what is known before it runs, and what follows. `needed`: the tools
   * and skills that a turn named before it read anything; null if it named none.
   */
  ofPlan(planned: Planned, needed: ReadonlySet<string> | null = null): { mode: OriginMode; said: readonly string[] } | null {
    const { toolbox, settings } = this.#parts
    const open = openArguments(planned)
    const look_up = this.#lookUp(() => null)
    const found = open.flatMap(({ tool, args }) => {
      const known = toolbox.forPlan(tool)
      return known.ok ? this.#judged(tool, destinationsIn(args, known.definition), look_up) : []
    })
    const from_strangers = open.flatMap(({ tool, given }) => given.flatMap((one) => this.#fromStrangers(planned, tool, one) ?? []))
    const declared = Array.from(fieldsIn(declaredDestinations(planned)), (field) => ({ ...field, kinds: [field.path] }))
    const judged = [...this.#judged(planned.manifest.id, declared, look_up), ...found].map(({ sentence }) => sentence)
    const { id, plan } = planned.manifest
    const unneeded = plan.steps.filter(({ tool }) => needed !== null && !needed.has(id) && !needed.has(shownName(tool)))
    const not_named = unneeded.map(({ tool }) => `the turn did not name \`${tool}\` as a tool that its task needs`)
    const said = new Set([...judged, ...from_strangers, ...not_named])
    const { origins } = settings()
    const mode = unneeded.length > 0 && origins === 'observe' ? 'ask' : origins
    return said.size === 0 ? null : { mode, said: [...said] }
  }

  /**
   * The steps of a plan that waits, with what named their arguments, for whoever decides. `by`: the
   * words of a caller who says where it goes, so that nothing of it is in doubt; null: a model's.
   */
  ofSteps(planned: Planned, by: Sources['trusted'] | null): WaitingStep[] {
    const open = openArguments(planned)
    const look_up = this.#lookUp(by ?? (() => null))
    return knownArguments(planned).map(({ tool, args, constants }, index) => {
      const { args: parts = {}, given = [] } = open[index] ?? {}
      const known = this.#parts.toolbox.forPlan(tool)
      const found = by || !known.ok ? [] : this.#judged(tool, destinationsIn(parts, known.definition), look_up)
      const strange = by ? [] : given.filter((one) => this.#fromStrangers(planned, tool, one) !== null)
      const doubted = strange.map((one) => ({ argument: one.at, value: '', origin: `text:${placeOf(planned, one)}` }))
      const said = namesOf(fieldsIn(parts), look_up.now)
      // A template with a part that nobody named is not named by its other parts.
      const unnamed = new Set(Array.from(fieldsIn(parts), ({ path }) => path).filter((path) => !Object.hasOwn(said, path)))
      const from_steps = given.filter((one) => !unnamed.has(one.at) && !this.#mayBeStrange(planned, one))
      const named_by = {
        ...Object.fromEntries(constants.map((name) => [name, 'manifest'])),
        ...said,
        ...Object.fromEntries(from_steps.map((one) => [one.at, `output:${placeOf(planned, one)}`])),
      }
      return { tool, input: this.#parts.log.clean(args) as JsonFields, named_by, origins: [...found.map(({ doubt }) => doubt), ...doubted] }
    })
  }

  /** The sentence for a destination that an earlier step gives from what strangers may write. */
  #fromStrangers(planned: Planned, tool: string, one: GivenBefore): string | null {
    const { at, path } = one
    const source = sourceOf(planned, one)
    const taking = this.#parts.toolbox.forPlan(tool)
    if (!taking.ok || !this.#mayBeStrange(planned, one)) return null
    const placed = at.split('.').reduceRight<unknown>((inner, name) => ({ [name]: inner }), 'any')
    if (destinationsIn(placed, taking.definition).length === 0) return null
    return `\`${at}\` of \`${tool}\` comes from \`${path}\`, which \`${source?.tool}\` returns and strangers may write`
  }

  /** True for a field of an earlier step that strangers may write. */
  #mayBeStrange(planned: Planned, one: GivenBefore): boolean {
    const source = sourceOf(planned, one)
    const giving = source && this.#parts.toolbox.forPlan(source.tool)
    if (!giving?.ok) return false
    const untrusted = giving.definition.untrusted ?? readsAddress(giving.definition)
    return isFreeText(one.path.split('.').at(-1) ?? '') || isUntrustedAt(untrusted, one.path)
  }

  /** The origin of a value for an expression: of a list, the weakest of its items. */
  ofValue(value: unknown): string {
    const { later, events } = this.#lookUp(() => null)
    const sources: Sources = {
      trusted: later,
      texts: () => this.#textsOf(events(), MOST_TEXTS),
      pieces: [],
      clean: (fields) => this.#parts.log.clean(fields),
    }
    const found = Array.from(fieldsIn(value), (field) => originOf(field.value, sources, { tool: '', kinds: [] }).origin)
    return originText(weakest(found))
  }

  #judged(tool: string, destinations: readonly Destination[], { now, later, events }: LookUp): Told[] {
    const open = destinations.filter(({ value }) => value !== '')
    if (open.length === 0) return []
    const { trusted_text: pieces, origins } = this.#parts.settings()
    const most = origins === 'observe' ? OBSERVED_TEXTS : MOST_TEXTS
    const clean: Sources['clean'] = (fields) => this.#parts.log.clean(fields)
    const named: Sources = { trusted: now, texts: () => [], pieces: [], clean }
    const unclear = open.filter(({ path, value, kinds }) => !originOf(value, named, { tool, kinds: [...kinds, path] }).allowed)
    if (unclear.length === 0) return []
    return doubtsOf(tool, unclear, { trusted: later, texts: () => this.#textsOf(events(), most), pieces, clean })
  }

  /**
   * Looks up who named values, each once. `now`: by the events of the context. `later`: also by
   * those that the context has lost, which is slower.
   */
  #lookUp(own: Sources['trusted'], words: readonly Event[] = []): LookUp {
    const directing = onlyOnce(() => this.#directing([...this.#parts.memory.live.events, ...words]))
    const events = onlyOnce(() => [...this.#allEvents(), ...words])
    const all_directing = onlyOnce(() => this.#directing(events()))
    return {
      now: eachOnce((value, outputs) => own(value) ?? this.#trusted(value, directing(), outputs)),
      later: eachOnce((value) => own(value) ?? this.#trusted(value, all_directing())),
      events,
    }
  }

  /** The newest events whose words count, the newest first. */
  #directing(events: readonly Event[]): readonly Event[] {
    const settings = this.#parts.settings()
    return events
      .slice(-MOST_EVENTS)
      .filter((event) => mayDirect(event, settings))
      .toReversed()
  }

  #trusted(value: string | number, directing: readonly Event[], outputs = true): Origin | null {
    const wanted = wantedOf(value)
    for (const event of directing) {
      const { fields, words } = saidIn(event)
      const field = fields.get(wanted.form)
      if (field !== undefined) return { from: 'event', place: `${event.type}.${field}` }
      if (words.has(wanted)) return { from: 'user' }
    }
    if (this.#edits.some((words) => words.has(wanted))) return { from: 'user' }
    if (outputs) this.#read()
    const place = this.#known.find(value)
    if (place !== undefined) return { from: 'output', place }
    const set = constantsOf(this.#parts.settings()).find(([, words]) => words.has(wanted))
    return set ? { from: 'setting', place: set[0] } : null
  }

  *#textsOf(events: readonly Event[], most: number): Generator<Text> {
    for (const event of events.slice(-most).toReversed())
      for (const { path, value } of contentOf(event))
        if (typeof value === 'string')
          yield {
            in: event.type,
            place: `${event.type}.${path}`,
            said: `the text of \`${path}\` of the event ${event.id} (${event.type})`,
            text: value,
            sender: senderOf(event),
          }
    yield* this.#texts.slice(-most).toReversed()
  }

  #keepText(text: Text): void {
    this.#texts.push(text)
    this.#texts_bytes += text.text.length
    let gone = 0
    while (this.#texts.length - gone > MOST_TEXTS || this.#texts_bytes > TEXT_BYTES) {
      this.#texts_bytes -= this.#texts[gone]?.text.length ?? 0
      gone += 1
    }
    if (gone > 0) this.#texts = this.#texts.slice(gone)
  }

  /** Reads the outputs of calls before the object started. A masked value is forgotten. */
  #readLog(): void {
    this.#has_read_log = true
    const given_since = this.#unread.splice(0)
    const { log, toolbox } = this.#parts
    const matches = (text: string) => text.includes('"kind":"effect-') || text.includes('"kind":"approval-decided"')
    const found = newestOf(log, matches)
    const newer = this.#texts
    const newer_edits = this.#edits.splice(0)
    this.#texts = []
    this.#texts_bytes = 0
    const inputs = new Map<string, unknown>()
    for (const { text } of found) {
      const { kind, effect_id, tool, input = inputs.get(effect_id), output, edits } = JSON.parse(text) as LoggedEffect
      if (edits) this.noteEdit(edits)
      if (kind === 'effect-started') inputs.set(effect_id, input)
      const definition = toolbox.forPlan(tool)
      if (kind === 'effect-ended' && definition.ok) this.note({ tool, definition: definition.definition, input }, output)
    }
    this.#read()
    this.#unread = given_since
    for (const text of newer) this.#keepText(text)
    this.#edits = [...this.#edits, ...newer_edits].slice(-MOST_EDITS)
  }

  /** The events of the context, then the newest of the scope, which count first. */
  #allEvents(): readonly Event[] {
    return [...this.#parts.memory.live.events, ...this.#pastEvents()]
  }

  /** The newest events of the scope, of which the context may have lost some. Each is read once. */
  #pastEvents(): readonly Event[] {
    const { database } = this.#parts
    const { seq, events } = this.#past
    const sql = 'SELECT seq, payload FROM events WHERE seq > ? ORDER BY seq DESC LIMIT ?'
    const rows = database.all<{ seq: number; payload: string }>(sql, seq, MOST_EVENTS)
    const newer = rows.map(({ payload }) => JSON.parse(payload) as Event).toReversed()
    this.#past = { seq: rows[0]?.seq ?? seq, events: [...events, ...newer].slice(-MOST_EVENTS) }
    return this.#past.events
  }

  /** The code of a reflex that a person wrote: its constants are a person's. */
  #codeOf(by: string): ReflexVersion | null {
    const [, id = '', version] = /^reflex:(.+)@(\d+)$/.exec(by) ?? []
    const found = this.#parts.programs.find({ id, version: Number(version) })
    if (!found) return null
    // A copy of another one has its origin: an agent may have written that.
    const { scope, run, origin } = found.provenance
    return scope === null && run === undefined && origin === null ? found : null
  }
}

/** The earlier step that gives an argument. */
const sourceOf = ({ manifest }: Planned, { step }: GivenBefore) =>
  manifest.plan.steps.find(({ name }, index) => (name ?? String(index)) === step)

/** The tool of that step, and the field of its output. */
const placeOf = (planned: Planned, one: GivenBefore): string =>
  [sourceOf(planned, one)?.tool ?? one.step, one.path].filter((part) => part !== '').join('.')

/** Makes something when it is first asked for. */
function onlyOnce<Made>(make: () => Made): () => Made {
  let made: { value: Made } | null = null
  return () => (made ??= { value: make() }).value
}

/** Remembers what was found for a value, for as long as one call is judged. */
function eachOnce(find: LookUp['now']): LookUp['now'] {
  const found = new Map<string | number, Origin | null>()
  return (value, outputs) => {
    const before = found.get(value)
    if (before !== undefined) return before
    const origin = find(value, outputs)
    found.set(value, origin)
    return origin
  }
}

/** True for a text in words, as a whole or in the parts of an answer over MCP. */
const givesWords = (output: unknown): boolean =>
  Array.from(fieldsIn(output)).some(
    ({ path, value }) => typeof value === 'string' && (path === '' || path === 'content.text') && /\s/.test(value.trim()),
  )

/** A longer text is words, and no address or name. */
const LONGEST_FIELD = 100

/** The words of a person: fields that were not there before, of a longer text its new words. */
function writtenIn(edits: EditedInputs): WholeWords {
  const words = Object.entries(edits).flatMap(([name, { from, to }]) => {
    const before = new Set(Array.from(fieldsOf(name, from), ({ path, value }) => JSON.stringify([path, value])))
    const new_fields = Array.from(fieldsOf(name, to)).filter(({ path, value }) => !before.has(JSON.stringify([path, value])))
    const words_before = new WholeWords(textOf(from))
    return new_fields.flatMap(({ value }) => {
      const said = isMask(value) ? '' : String(value)
      return said.length <= LONGEST_FIELD ? said : said.split(/\s+/).filter((word) => !words_before.has(word))
    })
  })
  return new WholeWords(words.join('\n'))
}

/** The values of an argument, with its keys that are addresses. */
const fieldsOf = (name: string, value: unknown) => [...fieldsIn(value, { path: name, name }), ...keysIn(value, name, name)]

function wordsOfPerson({ edits }: EditedCall): Sources['trusted'] {
  const written = writtenIn(edits)
  return (value) => (written.has(value) ? { from: 'user' } : null)
}

/** True for what the question showed with its origin, and for an address of known parts. */
function isNamedBefore({ path, value, parts }: Destination, { asked, edits }: EditedCall): boolean {
  const { named_by = {} } = asked
  if (parts) return parts.every((part) => Object.hasOwn(edits, part) || Object.hasOwn(named_by, part))
  return Object.hasOwn(named_by, path) && Array.from(fieldsIn(asked.input)).some((one) => one.path === path && one.value === value)
}

const wasAsked = ({ argument, value }: Doubt, { asked }: EditedCall): boolean =>
  asked.origins?.some((one) => one.argument === argument && one.value === value) === true

const textOf = (value: unknown): string =>
  Array.from(fieldsIn(value), (field) => (isMask(field.value) ? '' : String(field.value))).join('\n')

/** The newest entries that match, in as many bytes as are kept. Oldest first. */
function newestOf(log: Pick<Reflexes['log'], 'find' | 'last'>, matches: (text: string) => boolean): { text: string }[] {
  const newest: { text: string }[] = []
  let size = 0
  const first = Math.max(0, log.last - MOST_ENTRIES)
  for (let before = log.last + 1; before > first + 1; before -= AT_ONCE) {
    const after = Math.max(first, before - AT_ONCE - 1)
    const { found } = log.find(matches, { after, before, limit: AT_ONCE, bytes: Number.MAX_SAFE_INTEGER, contexts: false })
    for (const entry of found.toReversed()) {
      size += entry.text.length
      if (size > MOST_BYTES) return newest.toReversed()
      newest.push(entry)
    }
  }
  return newest.toReversed()
}

const wordsOf = oncePer(({ code }: Pick<ReflexVersion, 'code'>) => new WholeWords(code))

function* contentOf(event: Event) {
  const { id: _id, type: _type, scope: _scope, source: _source, timestamp: _at, meta: _meta, ...content } = event
  // Its other fields are outputs of tools, and names.
  yield* fieldsIn(isModelAsked(event) ? { content: event.content } : content)
}

/** The whole fields of an event, and the words of all. */
const saidIn = oncePer((event: Event): { fields: ReadonlyMap<string, string>; words: WholeWords } => {
  const content = [...contentOf(event)]
  const whole = content.filter(({ name }) => !isFreeText(name)).map(({ path, value }): [string, string] => [formOf(value), path])
  return { fields: new Map(whole), words: new WholeWords(content.map(({ value }) => String(value)).join('\n')) }
})

const CONSTANTS = ['instructions', 'parameters', 'blackboard', 'goal_labels'] as const

/** The words of the settings that a person wrote for the agent. */
const constantsOf = oncePer((settings: Settings): [string, WholeWords][] =>
  CONSTANTS.flatMap((name): [string, WholeWords][] => {
    const value = settings[name]
    if (value === undefined) return []
    const text = Array.from(fieldsIn(value), (field) => String(field.value)).join('\n')
    return text === '' ? [] : [[name, new WholeWords(text)]]
  }),
)
