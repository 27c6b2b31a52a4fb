import { messageOf } from '../base/error-text.ts'
import type { FeedItem } from '../features/control-plane/contract/skill-feed.ts'
import { MOST_TELEMETRY_SKILLS } from '../features/control-plane/contract/telemetry.ts'
import { manifestOf } from '../features/control-plane/feed-item.ts'
import { pushApproval, unlistedTool } from '../skills/gate/pushed.ts'
import type { Manifest } from '../skills/manifest/manifest.ts'
import type { RunStatus } from '../skills/runner/ports.ts'
import type { SessionPorts } from '../skills/session/ports.ts'
import { ControlPlane } from '../features/control-plane/client/client.ts'
import { NO_VERDICTS, Verdicts, type KeptVerdicts } from '../features/control-plane/client/verdicts.ts'
import { placeIn, type StandaloneControlPlane, type ReflexConfig } from './config.ts'
import type { SkillRegistry } from './registry.ts'
import type { Storage } from './storage.ts'

/** Turns start a synchronization in the background if the last one is older. */
const STALE_MS = 60_000
const HOUR_MS = 3_600_000
/** Hours that wait for the control plane; older ones are dropped. */
const MOST_HOURS = 168
const MOST_PAGES = 200

/** `names`: the versions that came from the control plane, as `id@version`. */
type Position = { feed: string; revision: number; names: string[]; error: string | null }
/** Runs by the start of their hour, and by skill. */
type Counts = Record<string, Record<string, { calls: number; success: number }>>
type ControlPlaneParts = { storage: Storage; registry: SkillRegistry }
/** The limits of its skills here. */
type Limits = Pick<StandaloneControlPlane, 'tools' | 'approval'> & { onlyReads: (tool: string) => boolean }

/**
 * A control plane as the host's storage follows it. While it is away, the stored skills and
 * verdicts serve; the log records when that begins and ends.
 */
export class FollowedControlPlane {
  readonly #parts: ControlPlaneParts
  readonly #limits: Limits
  readonly #client: ControlPlane
  readonly #feed: string
  readonly #now: () => number
  readonly #newId: () => string
  #tried_at: number | null = null
  #running: Promise<boolean> | null = null
  /** Asks for a verdict before a skill runs. */
  readonly port: Pick<SessionPorts, 'controlPlane'>

  constructor(config: ReflexConfig, { url, key, fetch: send, ...limits }: StandaloneControlPlane, parts: ControlPlaneParts) {
    const { project, tool_policies = {}, now = Date.now, newId = () => crypto.randomUUID() } = config
    this.#parts = parts
    this.#limits = { ...limits, onlyReads: (tool) => tool_policies[tool]?.repeatable === true }
    this.#client = new ControlPlane({ url, key, project }, send)
    this.#feed = JSON.stringify([url, project])
    this.#now = now
    this.#newId = newId
    const { control } = parts.storage
    const verdicts = new Verdicts({
      ask: (question) => this.#client.check(question),
      load: () => control.get<KeptVerdicts>('verdicts') ?? NO_VERDICTS,
      save: (kept, turned) => {
        control.put('verdicts', kept)
        if (turned !== null) this.#log(turned, 'its cached verdicts are used', kept.error)
      },
      now,
    })
    const place = placeIn(config)
    this.port = {
      controlPlane: async (asked) => {
        const pushed = this.#pushed(asked)
        const refusal = pushed && this.#refusal(pushed)
        if (refusal !== null) return { verdict: 'deny', reason: refusal, asked_at: null, cached: false }
        const approval = pushed && this.#approval(pushed)
        const verdict = await verdicts.of(asked, place)
        return approval === null ? verdict : { ...verdict, approval }
      },
    }
  }

  /** The skill, if it came from the control plane. */
  #pushed({ skill_id, version }: { skill_id: string; version: string }): Manifest | null {
    const { storage, registry } = this.#parts
    const names = storage.control.get<Position>('skills')?.names ?? []
    return names.includes(`${skill_id}@${version}`) ? (registry.find(skill_id, version)?.manifest ?? null) : null
  }

  #refusal(skill: Manifest): string | null {
    const tool = unlistedTool(skill, this.#limits.tools ?? ['*'])
    return tool === undefined ? null : `it uses ${tool}, which control_plane.tools of this process does not list`
  }

  #approval(skill: Manifest): string | null {
    const { approval, onlyReads } = this.#limits
    return pushApproval({ REFLEX_CONTROL_PLANE_APPROVAL: approval }, skill, onlyReads)
  }

  /** Synchronizes in the background if the last time is long ago. */
  touch(): void {
    if (this.#tried_at === null || Math.abs(this.#now() - this.#tried_at) >= STALE_MS) void this.sync().catch(() => false)
  }

  /** Counts a run that ended. A reused output is not a run. */
  ran(skill_id: string, status: RunStatus): void {
    if (status === 'reused') return
    const { control } = this.#parts.storage
    const counts = control.get<Counts>('counts') ?? {}
    const hour = (counts[Math.floor(this.#now() / HOUR_MS) * HOUR_MS] ??= {})
    const known = (hour[skill_id] ??= { calls: 0, success: 0 })
    known.calls += 1
    if (status === 'ok') known.success += 1
    control.put('counts', Object.fromEntries(Object.entries(counts).slice(-MOST_HOURS)))
  }

  sync(): Promise<boolean> {
    this.#tried_at = this.#now()
    this.#running ??= this.#synchronize().finally(() => (this.#running = null))
    return this.#running
  }

  async #synchronize(): Promise<boolean> {
    const { control } = this.#parts.storage
    const stored = control.get<Position>('skills')
    const known = stored?.feed === this.#feed ? stored : { feed: this.#feed, revision: 0, names: stored?.names ?? [], error: null }
    try {
      const next = await this.#take(known)
      await this.#report()
      if (known.error !== null) this.#log('restored', '', null)
      control.put('skills', { ...next, error: null } satisfies Position)
      return true
    } catch (error) {
      const reason = messageOf(error).slice(0, 500)
      if (known.error === null) this.#log('degraded', 'the skills that came from it are used', reason)
      control.put('skills', { ...known, names: control.get<Position>('skills')?.names ?? known.names, error: reason } satisfies Position)
      return false
    }
  }

  /** From revision 0 the feed is whole: versions that it lacks are withdrawn. */
  async #take({ feed, revision, names, error }: Position): Promise<Position> {
    const whole = revision === 0
    const seen = new Set<string>(whole ? [] : names)
    const owned = new Set(names)
    let at = revision
    for (let pages = 0; ; pages += 1) {
      if (pages === MOST_PAGES) throw new Error('the feed of skills has too many pages')
      const page = await this.#client.skills(at)
      if (page.revision < at) return this.#take({ feed, revision: 0, names: [...owned], error })
      for (const item of page.items)
        if (await this.#takeItem(item, { feed, owned })) seen.add(nameOf(item))
        else seen.delete(nameOf(item))
      at = page.revision
      if (!page.more) break
    }
    for (const name of owned) if (!seen.has(name)) this.#withdraw(name)
    return { feed, revision: at, names: [...owned], error }
  }

  /** Returns true if the version is active afterwards. */
  async #takeItem(item: FeedItem, { feed, owned }: { feed: string; owned: Set<string> }): Promise<boolean> {
    const { registry } = this.#parts
    const read = item.manifest === null ? null : await manifestOf(item)
    if (!read?.ok) return false
    // A skill of this process is not replaced.
    const others = registry.list().some(({ manifest: { id, version } }) => id === item.id && !owned.has(`${id}@${version}`))
    if (others) return false
    const name = nameOf(item)
    const isNew = !owned.has(name)
    // Known as the control plane's before it may run, whatever becomes of this synchronization.
    if (isNew) this.#keepNames(feed, owned.add(name))
    const registered = registry.register(read.manifest)
    if (!registered.ok) {
      if (isNew && owned.delete(name)) this.#keepNames(feed, owned)
      return false
    }
    if (registered.skill.state !== 'active') registry.setState(item.id, item.version, 'active')
    return true
  }

  #keepNames(feed: string, owned: ReadonlySet<string>): void {
    const { control } = this.#parts.storage
    const stored = control.get<Position>('skills')
    const known = stored?.feed === feed ? stored : { feed, revision: 0, error: null }
    control.put('skills', { ...known, names: [...owned] } satisfies Position)
  }

  #withdraw(name: string): void {
    const [id = '', version = ''] = name.split('@')
    const found = this.#parts.registry.find(id, version)
    if (found && found.state !== 'deprecated') this.#parts.registry.setState(id, version, 'deprecated')
  }

  /** Sends the hours that have ended. A repeated hour is a duplicate, which the receiver drops. */
  async #report(): Promise<void> {
    const { control } = this.#parts.storage
    const ended = Object.entries(control.get<Counts>('counts') ?? {}).filter(([start]) => Number(start) + HOUR_MS <= this.#now())
    for (const [start, skills] of ended) {
      const client = control.get<string>('client') ?? this.#newId()
      control.put('client', client)
      const window = { since: new Date(Number(start)).toISOString(), until: new Date(Number(start) + HOUR_MS).toISOString() }
      const sums = Object.entries(skills).map(([skill_id, sum]) => ({ skill_id, ...sum, delta_cost: null, delta_p95: null }))
      await this.#client.report({ client, window, skills: sums.slice(0, MOST_TELEMETRY_SKILLS) })
      const { [start]: _sent, ...left } = control.get<Counts>('counts') ?? {}
      control.put('counts', left)
    }
  }

  #log(turned: 'degraded' | 'restored', used: string, error: string | null): void {
    const at = new Date(this.#now()).toISOString()
    const reason = turned === 'degraded' ? { reason: `the control plane does not answer: ${used} (${error})` } : {}
    this.#parts.storage.log.append({ at, kind: `skills-${turned}`, trace_id: this.#newId(), source: 'control-plane', ...reason })
  }
}

const nameOf = ({ id, version }: { id: string; version: string }): string => `${id}@${version}`
