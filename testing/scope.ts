import { moveClockTo } from './clock.ts'
import { type ModelAnswer, ScriptedModel } from './model.ts'
import { crash, stubOf, until, type Stub } from './objects.ts'
import { setUp, type SetUp } from './set-ups.ts'
import { createExecutionContext } from 'cloudflare:test'
import { env as bindings } from 'cloudflare:workers'
import { deploymentHider } from '../src/base/secrets.ts'
import { z } from 'zod'
import type { Agent } from '../src/agent/define-agent.ts'
import type { EventInput, EventOutcome } from '../src/contract/event-record.ts'
import type { EntryKind, LogEntry, EntryOf } from '../src/contract/log-entry.ts'
import type { ContextView, ScopeState } from '../src/contract/scope.ts'
import { settingsPatch, type SettingsPatch } from '../src/contract/settings/settings.ts'
import type { Env } from '../src/env.ts'
import { parseEvent } from '../src/events/parse-event.ts'
import { createApp } from '../src/http/app.ts'
import { features } from '../src/features/index.ts'

export type TestEvent = EventInput
export type TestScopeOptions = {
  /**
   * The scope's name; by default one that fits the agent's first pattern and no other test has. A
   * list of agents needs it.
   */
  scope?: string
  /** The answers of the model, in order. */
  model?: readonly ModelAnswer[]
  settings?: SettingsPatch
  /** Manifests that are registered and made active, which takes passing tests. */
  skills?: readonly ({ id: string; version: string } & Record<string, unknown>)[]
  /** Reflexes that are registered, and added to the scope's settings. */
  reflexes?: readonly ({ id: string } & Record<string, unknown>)[]
  /** Variables of the deployment, beside the variables of wrangler.toml. */
  env?: Partial<Env>
}

type Call = { tool: string; input: unknown; status: string; output: unknown; error: string | null }

const OUTCOME_MS = 20_000
const PAGE = 10_000
/** The key for calls of `api`. It opens nothing outside of a test. */
const ADMIN_KEY = 'the-admin-key-of-tests'
let scopes = 0

/**
 * A scope that the agent serves, in the runtime of Workers, with a scripted model. Of a list of
 * agents, such as a deployment's, the one serves it whose pattern matches.
 */
export async function testScope(agent: Agent | readonly Agent[], options: TestScopeOptions = {}): Promise<TestScope> {
  const { model: answers = [], settings, skills = [], reflexes = [], env = {} } = options
  const listed = [agent].flat()
  const name = options.scope ?? freshName(listed)
  const model = new ScriptedModel(answers)
  const set_up = setUp(name, listed, { script: model.rule, env: { REFLEX_MODEL: 'offline', ...env } })
  const { agents } = set_up
  const scope = new TestScope(name, model, set_up)
  const alone = listed.length === 1 ? listed[0]?.name : undefined
  const named = alone === undefined || agents.agentOf(name).name === alone ? {} : { agent: alone }
  for (const reflex of reflexes) await scope.api('POST /v1/reflexes', reflex)
  const chain = reflexes.length > 0 && { reflexes: [...(settings?.reflexes ?? []), ...reflexes.map(({ id }) => ({ id }))] }
  if (settings !== undefined || 'agent' in named || chain) await scope.configure({ ...named, ...settings, ...chain })
  for (const skill of skills) {
    await scope.api('POST /v1/skills', skill)
    await scope.api(`POST /v1/skills/${skill.id}@${skill.version}/state`, { state: 'active' })
  }
  return scope
}

function freshName([agent, ...others]: readonly Agent[]): string {
  if (!agent || others.length > 0) throw new Error('a list of agents needs the name of a scope: testScope(agents, { scope })')
  const pattern = agent.scopes[0] ?? 'test/*'
  return pattern.replaceAll('*', () => `${(scopes += 1)}-${crypto.randomUUID().slice(0, 8)}`)
}

export class TestScope {
  readonly name: string
  readonly model: ScriptedModel
  readonly #set_up: SetUp
  readonly #app: ReturnType<typeof createApp>
  #stub: Stub

  constructor(name: string, model: ScriptedModel, set_up: SetUp) {
    this.name = name
    this.model = model
    this.#set_up = set_up
    this.#app = createApp(set_up.agents, features)
    this.#stub = stubOf(name)
  }

  /** Sends an event and returns its outcome. */
  async send(event: TestEvent): Promise<EventOutcome> {
    return this.outcome(await this.post(event))
  }

  /** Sends an event and returns its id. Throws if the event does not fit its type's schema. */
  async post(event: TestEvent): Promise<string> {
    const { eventSchema: union, eventTypes: types } = this.#set_up.agents
    const parsed = parseEvent(event, {
      union,
      types,
      defaults: { now: Date.now(), source: 'test' },
      scope: this.name,
      secrets: deploymentHider(bindings),
    })
    if (!parsed.ok)
      throw new Error(`the event is ${parsed.reason}: ${parsed.errors.map(({ path, message }) => `${path}: ${message}`).join('; ')}`)
    const accepted = await this.#stub.accept([parsed.event], 'http')
    if (!accepted.ok) throw new Error(`the scope's inbox is full: ${accepted.depth} of ${accepted.limit} events`)
    return parsed.event.id
  }

  /** Waits for the outcome of an event. */
  async outcome(id: string): Promise<EventOutcome> {
    const { settled, records } = await this.#stub.outcomes([id], OUTCOME_MS)
    const [record] = records
    if (!record) throw new Error(`the scope has no event ${id}`)
    if (!settled) throw new Error(`event ${id} has no outcome after ${OUTCOME_MS} ms; it waits for: ${record.waiting?.detail ?? 'nothing'}`)
    return record
  }

  /**
   * Moves the clock of all tests in this file ahead. What is due on the way happens at its time:
   * retries, timers, quiet periods before turns.
   */
  async advance(ms: number): Promise<void> {
    const end = Date.now() + ms
    for (;;) {
      const due = await this.#idle()
      if (due === null || due > end) break
      moveClockTo(due)
    }
    moveClockTo(end)
    await this.#idle()
  }

  /** Kills the scope in the middle of its work. It continues from its storage. */
  async kill(): Promise<void> {
    this.#stub = await crash(this.name)
    await this.#stub.poke()
  }

  /** The log, or its entries of one kind, oldest first. */
  async log(): Promise<LogEntry[]>
  async log<Kind extends EntryKind>(kind: Kind): Promise<EntryOf<Kind>[]>
  async log(kind?: EntryKind): Promise<LogEntry[]> {
    const found: LogEntry[] = []
    for (;;) {
      const { entries } = await this.#stub.readLog(found.at(-1)?.seq ?? 0, PAGE)
      if (entries.length === 0) return kind === undefined ? found : found.filter((entry) => entry.kind === kind)
      found.push(...entries.map((text) => JSON.parse(text) as LogEntry))
    }
  }

  /** The texts of the replies, oldest first. */
  async replies(): Promise<string[]> {
    return (await this.log('reply-sent')).map(({ content }) => content)
  }

  /** The calls of tools that ended, oldest first. */
  async calls(): Promise<Call[]> {
    const entries = await this.log()
    const inputs = new Map(entries.flatMap((entry) => (entry.kind === 'effect-started' ? [[entry.effect_id, entry.input]] : [])))
    return entries.flatMap((entry) => {
      if (entry.kind !== 'effect-ended') return []
      const { tool, effect_id, status, output, error } = entry
      return [{ tool, input: entry.input ?? inputs.get(effect_id), status, output, error }]
    })
  }

  /** Changes settings, as `PATCH /v1/scopes/SCOPE/settings` does. */
  async configure(patch: SettingsPatch): Promise<void> {
    const parsed = settingsPatch.safeParse(patch)
    if (!parsed.success) throw new Error(`the settings are invalid: ${z.prettifyError(parsed.error)}`)
    const changed = await this.#stub.configure(patch, 'test')
    if (!changed.ok) throw new Error(`the settings were refused: ${JSON.stringify(changed)}`)
  }

  /**
   * Calls the deployment's API as its admin: `PUT /v1/scopes/{scope}/timers/tick`, where `{scope}`
   * is this one. Returns the body. Throws if the answer is an error.
   */
  async api(at: `${string} /${string}`, body?: unknown, headers: Record<string, string> = {}): Promise<unknown> {
    const [method = '', path = ''] = at.split(' ')
    const env = { ...(bindings as Env), ...this.#set_up.env, REFLEX_ADMIN_KEY: ADMIN_KEY }
    const sent = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }
    const all = { Authorization: `Bearer ${ADMIN_KEY}`, ...(body !== undefined && { 'Content-Type': 'application/json' }), ...headers }
    const url = `https://reflex.test${path.replaceAll('{scope}', encodeURIComponent(this.name))}`
    const answer = await this.#app.fetch(new Request(url, { method, headers: all, ...sent }), env, createExecutionContext())
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${at}: ${answer.status} ${text}`)
    return answer.headers.get('Content-Type')?.includes('json') ? (JSON.parse(text) as unknown) : text
  }

  /** Approves the run that waits in this scope, as an admin. Waits until there is one. */
  approve(): Promise<unknown> {
    return this.#decide('approve', {})
  }

  reject(reason: string): Promise<unknown> {
    return this.#decide('reject', { reason })
  }

  async #decide(how: 'approve' | 'reject', body: object): Promise<unknown> {
    const waiting = async () => {
      const path = `GET /v1/approvals?status=pending&scope=${encodeURIComponent(this.name)}` as const
      return ((await this.api(path)) as { items: { id: string }[] }).items[0]?.id
    }
    return this.api(`POST /v1/approvals/${await until(waiting, `a run of ${this.name} waits for an approval`)}/${how}`, body)
  }

  state(): Promise<ScopeState> {
    return this.#stub.state()
  }

  /** The newest events of the working memory, and the scratch. */
  context(limit = 100): Promise<ContextView> {
    return this.#stub.context(limit)
  }

  /** Waits until nothing is due, and returns when something is. */
  async #idle(): Promise<number | null> {
    let due: number | null = null
    await until(async () => {
      due = (await this.#stub.poke()).wake_at
      const { turn } = await this.#stub.state()
      return turn === null && (due === null || due > Date.now())
    }, `scope ${this.name} has done what was due`)
    return due
  }
}
