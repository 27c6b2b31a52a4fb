import { messageOf } from '../../../base/error-text.ts'
import { hashJson } from '../../../base/json.ts'
import { LONGEST_ROLE, MOST_ROLES, type ControlPlaneVerdict, type PolicyQuestion, type PolicyVerdict } from '../../../contract/policy.ts'

/** The time for which a verdict is used without asking again. */
const FRESH_MS = 60_000
/** The time for which a verdict is used while the control plane does not answer. */
const KEPT_MS = 7 * 86_400_000
/** After a failure, proposals do not wait for the control plane for this time. */
const PAUSE_MS = 30_000
const MOST = 200
const MOST_REASON = 500
const NO_ENVIRONMENT = 'no environment is set (env), by which the control plane decides'

type VerdictKey = Pick<PolicyQuestion, 'skill_id' | 'version' | 'roles'>

type Kept = PolicyVerdict & { asked_at: number }
/** `error`: why the control plane does not answer; null while it does. */
export type KeptVerdicts = { error: string | null; verdicts: Record<string, Kept> }
export const NO_VERDICTS: KeptVerdicts = { error: null, verdicts: {} }

type VerdictParts = {
  ask: (question: PolicyQuestion) => Promise<PolicyVerdict>
  load: () => KeptVerdicts
  /** `turned`: the control plane has ceased to answer, or answers again. */
  save: (kept: KeptVerdicts, turned: 'degraded' | 'restored' | null) => void
  now: () => number
}

/**
 * The control plane's verdicts, cached. While it is away the cached ones count; a question that it
 * never answered is `unknown`, which the gate denies.
 */
export class Verdicts {
  readonly #parts: VerdictParts
  readonly #asking = new Map<string, Promise<ControlPlaneVerdict>>()
  #kept: KeptVerdicts | null = null
  #failed_at: number | null = null

  constructor(parts: VerdictParts) {
    this.#parts = parts
  }

  async of(asked: VerdictKey, { env, project }: { env: readonly string[]; project: string | null }): Promise<ControlPlaneVerdict> {
    if (env.length === 0) return { verdict: 'deny', reason: NO_ENVIRONMENT, asked_at: null, cached: false }
    const roles = asked.roles.filter(({ length }) => length > 0 && length <= LONGEST_ROLE)
    const question = { ...asked, project, env: [...env], roles: roles.toSorted().slice(0, MOST_ROLES) }
    const key = await hashJson(question)
    const asking = this.#asking.get(key) ?? this.#find(key, question).finally(() => this.#asking.delete(key))
    this.#asking.set(key, asking)
    return asking
  }

  async #find(key: string, question: PolicyQuestion): Promise<ControlPlaneVerdict> {
    const { now, ask } = this.#parts
    const kept = this.#state.verdicts[key]
    // A time of the future was written by a clock that was ahead.
    if (kept && Math.abs(now() - kept.asked_at) < FRESH_MS) return { ...kept, cached: true }
    if (this.#failed_at !== null && Math.abs(now() - this.#failed_at) < PAUSE_MS) return this.#without(kept)
    try {
      const { verdict, reason } = await ask(question)
      const answered = { verdict, reason: reason.slice(0, MOST_REASON), asked_at: now() }
      this.#failed_at = null
      this.#save({ error: null, verdicts: withNewest(this.#state.verdicts, key, answered) })
      return { ...answered, cached: false }
    } catch (error) {
      this.#failed_at = now()
      this.#save({ ...this.#state, error: messageOf(error).slice(0, MOST_REASON) })
      return this.#without(kept)
    }
  }

  get #state(): KeptVerdicts {
    return (this.#kept ??= this.#parts.load())
  }

  /** A repeated failure writes nothing. */
  #save(state: KeptVerdicts): void {
    const was_away = this.#state.error !== null
    const is_away = state.error !== null
    this.#kept = state
    if (was_away && is_away) return
    this.#parts.save(state, was_away === is_away ? null : is_away ? 'degraded' : 'restored')
  }

  #without(kept: Kept | undefined): ControlPlaneVerdict {
    if (kept && this.#parts.now() - kept.asked_at < KEPT_MS) return { ...kept, cached: true }
    const reason = `the control plane does not answer, and no verdict of it is cached: ${this.#state.error}`
    return { verdict: 'unknown', reason, asked_at: null, cached: false }
  }
}

function withNewest(verdicts: KeptVerdicts['verdicts'], key: string, answered: Kept): KeptVerdicts['verdicts'] {
  const others = Object.entries(verdicts).filter(([other]) => other !== key)
  const newest = others.toSorted(([, one], [, other]) => other.asked_at - one.asked_at).slice(0, MOST - 1)
  return { ...Object.fromEntries(newest), [key]: answered }
}
