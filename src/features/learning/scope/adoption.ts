import { hexHash } from '../../../base/hash.ts'
import { registerReflex, setReflexState } from '../../../artifacts/kinds.ts'
import { storedReflex, storedReflexVersions } from '../../../artifacts/platform.ts'
import { limits } from '../../../base/limits.ts'
import type { Refused } from '../../../base/result.ts'
import type { Foreseen } from '../../../contract/certificate.ts'
import type { Adoption, LearnedVersion } from '../contract/learner-api.ts'
import { agentOwner, generationId, type ReflexReference, type ReflexVersion } from '../../../contract/reflex.ts'
import { isolateSandbox } from '../../../reflexes/isolate-sandbox.ts'
import { dryRun } from '../../../reflexes/run-reflex.ts'
import { checkReflex } from '../../../reflexes/static-check.ts'
import { storeOf } from '../../../store/store.ts'
import type { Lanes } from '../../../engine/effects/wiring.ts'
import type { Configuration } from '../../../engine/settings/change.ts'

type AdoptionParts = Pick<Lanes, 'scope' | 'env' | 'owned' | 'agent' | 'toolbox' | 'settings' | 'reflex_sync' | 'now'> & {
  /** Changes the chain, and neither its owner nor what is suspended. */
  rechain: Configuration['rechain']
  /** Begins the certificate of a version. */
  begin: (version: ReflexVersion, foreseen: Foreseen) => void
}
type Id = { id: string; version: number }

/**
 * Registers what was learned from the scope's decisions as its agent's own: the same check, owner
 * and rights as what the agent writes. Each step changes nothing when it is repeated.
 */
export class Adopting {
  readonly #parts: AdoptionParts

  constructor(parts: AdoptionParts) {
    this.#parts = parts
  }

  async adopt(learned: LearnedVersion): Promise<Adoption> {
    const { code, replaces, run_id } = learned
    const refusal = this.#lacks(learned)
    if (refusal) return refusal
    const checked = await checkReflex(code)
    if (!checked.ok) return { ok: false, reason: 'invalid', detail: checked.errors.map(({ message }) => message).join('; ') }
    const tried = dryRun(isolateSandbox(), { hash: checked.hash, code })
    if (!tried.ok && tried.run.reason !== 'error') return { ok: false, reason: 'invalid', detail: `it ended in ${tried.run.reason}` }
    const place = await this.#place(learned, checked.hash)
    if ('ok' in place) return place
    if (!this.#hasRoom(place.id, replaces)) {
      return { ok: false, reason: 'too_many', detail: `the chain has ${limits.chain_length} reflexes, which is the limit` }
    }
    const registered = place.known ?? (await this.#register(learned, place.id, checked.hash))
    if ('ok' in registered) return registered
    const { id, version, hash } = registered
    if (learned.foreseen) this.#parts.begin(registered, learned.foreseen)
    this.#parts.owned.add(id)
    const gone = await this.#replaced(replaces, { id, version })
    const changed = await this.#parts.rechain((chain) => rechained(chain, id, gone), `learner:${run_id}`)
    if (!changed.ok) throw new Error(changed.detail)
    await this.#parts.reflex_sync.refresh()
    return { ok: true, id, version, hash }
  }

  /** A learned reflex never does what its agent cannot do. */
  #lacks({ needs }: LearnedVersion): Refused<'lacks'> | null {
    for (const { kind, name } of needs ?? []) {
      const found = kind === 'tool' ? this.#parts.toolbox.find(name) : null
      if (found?.ok === false) return { ok: false, reason: 'lacks', detail: found.detail }
    }
    return null
  }

  /**
   * The id to register it under. Beside an active version a further id follows in the chain, since
   * the new version was only taught what that one passes on; one with branches passes nothing on.
   * `known`: it is registered already.
   */
  async #place(
    { name, run_id, branches }: LearnedVersion,
    hash: string,
  ): Promise<{ id: string; known: ReflexVersion | null } | Refused<'invalid'>> {
    const { env, scope } = this.#parts
    // Ids are the deployment's, and other scopes decide the same.
    const own = `${name}.${hexHash(scope).slice(0, 8)}`
    for (let generation = 1; ; generation += 1) {
      const id = generationId(own, generation)
      const versions = await storedReflexVersions(storeOf(env), id)
      const same = versions.find((one) => one.hash === hash)
      const known = same ? await storedReflex(storeOf(env), id, same.version) : null
      if (known?.provenance.run === run_id || (known?.state === 'shadow' && known.state_reason === null)) return { id, known }
      if (known && known.state !== 'draft') {
        const why = known.state_reason ?? `it is ${known.state}`
        return { ok: false, reason: 'invalid', detail: `${id}@${known.version} has the same code: ${why}` }
      }
      if (branches || !versions.some(({ state }) => state === 'active')) return { id, known: null }
    }
  }

  #hasRoom(id: string, replaces: readonly Id[]): boolean {
    const chain = this.#parts.settings().reflexes
    return (
      rechained(
        chain,
        id,
        replaces.map((one) => one.id),
      ).length <= limits.chain_length
    )
  }

  async #register(
    { code, description, run_id }: LearnedVersion,
    id: string,
    hash: string,
  ): Promise<ReflexVersion | Exclude<Adoption, { ok: true }>> {
    const { env, scope, agent, now } = this.#parts
    const owner = agentOwner(scope)
    const provenance = { by: agent().name, scope, template: null, origin: null, run: run_id }
    const draft = { id, code, hash, description, owner, owner_id: owner, scopes: [scope], state: 'shadow' as const, provenance, now: now() }
    const created = await registerReflex(storeOf(env), draft)
    return created.ok ? created.version : created
  }

  /** Retires versions that are still in shadow mode. Returns the ids that no version is left of. */
  async #replaced(replaces: readonly Id[], by: Id): Promise<string[]> {
    const { env, owned, now } = this.#parts
    const gone: string[] = []
    for (const { id, version } of replaces) {
      if (id === by.id && version === by.version) continue
      const reason = `${by.id}@${by.version} replaces it`
      await setReflexState(storeOf(env), { id, version, from: 'shadow', state: 'retired', reason, now: now() })
      const left = await storedReflexVersions(storeOf(env), id)
      if (id === by.id || left.some(({ state }) => state !== 'retired')) continue
      owned.remove(id)
      gone.push(id)
    }
    return gone
  }
}

/** The newest comes last: it was taught what those before it pass on. */
function rechained(chain: readonly ReflexReference[], id: string, gone: readonly string[]): ReflexReference[] {
  const left = chain.filter((one) => one.id === id || !gone.includes(one.id))
  return left.some((one) => one.id === id) ? left : [...left, { id }]
}
