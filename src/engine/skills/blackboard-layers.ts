import { byteLength, type Json, type JsonFields } from '../../base/json.ts'
import { checkJson } from '../../base/check-json.ts'
import { messageOf } from '../../base/error-text.ts'
import { isPlatformFault } from '../../base/faults.ts'
import { PROBE_TTL_S, type BlackboardProbe } from '../../contract/settings/blackboard.ts'
import type { EntryHead } from '../../contract/log-entry.ts'
import { seedBlackboard, type Blackboard, type Seeded } from '../../skills/plan/blackboard.ts'
import { holdsReference } from '../../skills/plan/template.ts'
import type { Lanes } from '../effects/wiring.ts'

/** The time limit of a probe: the turn waits for it. */
const PROBE_TIMEOUT_MS = 5000
const STATE_BYTES = 16_000
const PROBE_BYTES = 16_000

type BlackboardLayersParts = Pick<Lanes, 'agent' | 'settings' | 'memory' | 'effects' | 'toolbox' | 'now'>
type Known = { of: string; at: number; answer: CallAnswer }
type CallAnswer = { ok: true; value: Json } | { ok: false; error: string }

/**
 * The layers of a scope's blackboard: the setting, exported keys of the scratch, and probes; later
 * layers win. Unusable values are omitted with their reason. Answers of probes are kept in memory
 * only.
 */
export class BlackboardLayers {
  readonly #parts: BlackboardLayersParts
  readonly #known = new Map<string, Known>()
  readonly #asking = new Map<string, Promise<void>>()

  constructor(parts: BlackboardLayersParts) {
    this.#parts = parts
  }

  /** Asks the probes whose answers are older than their time to live. */
  async refresh(head: EntryHead): Promise<void> {
    const { blackboard_probes: probes = [] } = this.#parts.settings()
    const names = new Set(probes.map(({ name }) => name))
    for (const name of this.#known.keys()) if (!names.has(name)) this.#known.delete(name)
    await Promise.all(probes.filter((probe) => !this.#fresh(probe)).map((probe) => this.#ask(probe, head)))
  }

  /** The blackboard of the values that are known and fresh. */
  seed(): Seeded {
    const { settings, memory, now } = this.#parts
    const { blackboard, blackboard_scratch: keys = [], blackboard_probes = [] } = settings()
    const ages_ms: Record<string, number> = {}
    const omitted: Record<string, string> = {}
    const ctx: JsonFields = {}
    let left = STATE_BYTES
    for (const key of keys) {
      if (!Object.hasOwn(memory.live.scratch, key)) continue
      const answer = checked(memory.live.scratch[key], left)
      if (!answer.ok) omitted[`ctx.${key}`] = answer.error
      else {
        ctx[key] = answer.value
        left -= byteLength(JSON.stringify(answer.value))
      }
    }
    const probes: JsonFields = {}
    for (const probe of blackboard_probes) {
      const known = this.#fresh(probe)
      if (!known) continue
      if (known.answer.ok) {
        probes[probe.name] = known.answer.value
        ages_ms[`env.${probe.name}`] = now() - known.at
      } else omitted[`env.${probe.name}`] = known.answer.error
    }
    const seeded = seedBlackboard({ settings: blackboard as Partial<Blackboard>, agent_state: { ctx }, probes })
    return seeded.ok ? { ...seeded, ages_ms, omitted } : seeded
  }

  #fresh(probe: BlackboardProbe): Known | null {
    const known = this.#known.get(probe.name)
    if (known?.of !== this.#question(probe)) return null
    const age_ms = this.#parts.now() - known.at
    return age_ms >= 0 && age_ms <= (probe.ttl_s ?? PROBE_TTL_S) * 1000 ? known : null
  }

  /** Everything that the probe's answer depends on. */
  #question(probe: BlackboardProbe): string {
    const { http_tools, allowed_hosts } = this.#parts.settings()
    return JSON.stringify([this.#parts.agent().name, probe, http_tools.find(({ name }) => name === probe.tool), allowed_hosts])
  }

  /** Concurrent sessions share one request. */
  #ask(probe: BlackboardProbe, head: EntryHead): Promise<void> {
    const of = this.#question(probe)
    const asking = this.#asking.get(of) ?? this.#keep(probe, of, head).finally(() => this.#asking.delete(of))
    this.#asking.set(of, asking)
    return asking
  }

  async #keep(probe: BlackboardProbe, of: string, head: EntryHead): Promise<void> {
    const answer = await this.#answer(probe, head)
    this.#known.set(probe.name, { of, at: this.#parts.now(), answer })
  }

  async #answer({ tool, probe, input, args }: BlackboardProbe, head: EntryHead): Promise<CallAnswer> {
    try {
      const value = tool === undefined ? this.#call(probe ?? '', args ?? []) : await this.#read(tool, input ?? {}, head)
      return checked(value, PROBE_BYTES)
    } catch (error) {
      if (isPlatformFault(error)) throw error
      return { ok: false, error: messageOf(error) }
    }
  }

  #call(name: string, args: readonly unknown[]): unknown {
    const { probes = {} } = this.#parts.agent()
    const probe = Object.hasOwn(probes, name) ? (probes[name] as ((...args: unknown[]) => unknown) | undefined) : undefined
    if (!probe) throw new Error(`the agent has no probe ${name}`)
    return probe(...args)
  }

  /** An effect like any other, except that it is read each time: no recorded output answers it. */
  async #read(tool: string, input: JsonFields, head: EntryHead): Promise<unknown> {
    const { toolbox, effects, settings } = this.#parts
    const found = toolbox.forPlan(tool)
    if (!found.ok) throw new Error(found.detail)
    const { idempotence_key: _key, ...read } = found.definition
    const timeout_ms = Math.min(read.timeout_ms ?? settings().effect_timeout_ms, PROBE_TIMEOUT_MS)
    const { signal } = new AbortController()
    const definition = { ...read, repeatable: true, timeout_ms }
    return effects.run({ tool, definition, input, cause: { by: 'blackboard' }, turn_id: null, earlier_turns: [], head, signal, timeout_ms })
  }
}

/** A copy of the value as JSON, if it may stand on a blackboard. */
function checked(value: unknown, most_bytes: number): CallAnswer {
  const text = JSON.stringify(value ?? null)
  if (text === undefined) return { ok: false, error: 'is not JSON' }
  const copy = JSON.parse(text) as Json
  const json = checkJson(copy)
  if (!json.ok) return { ok: false, error: `${json.error.path} ${json.error.message}` }
  if (holdsReference(copy)) return { ok: false, error: 'names a secret, which only settings may do' }
  const bytes = byteLength(text)
  return bytes <= most_bytes ? { ok: true, value: copy } : { ok: false, error: `takes ${bytes} bytes as JSON; ${most_bytes} are left` }
}
