import { messageOf } from '../../base/error-text.ts'
import { canonicalJson, type Json } from '../../base/json.ts'
import { fromCel, toCel } from '../../expressions/values.ts'
import { DECISION_WORK, type Work } from '../../expressions/work.ts'

/** A synchronous function of the host that expressions may call, JSON in and out. It may throw. */
type Probe = (...args: Json[]) => unknown
export type Probes = Readonly<Record<string, Probe>>

/** A call as it was made, for the log; a replay is answered from it. */
export type ProbeCall = { probe: string; args: Json[] } & ProbeAnswer
type ProbeAnswer = { result: Json } | { error: string }

type ProbeOptions = {
  probes?: Probes | undefined
  /** A replay's: these calls are answered in their order and no probe is called. */
  recorded?: readonly ProbeCall[] | undefined
  /** Masks what is recorded. The expression gets the masked result too, as a replay will. */
  hide?: ((value: Json) => Json) | undefined
}

/**
 * The probes of one decision and the work that its expressions share. `calls` records the calls.
 */
export type ProbeSession = { readonly calls: ProbeCall[]; readonly work: Work; call(name: string, args: readonly unknown[]): unknown }

const MOST_CALLS = 500

export function probeSession({ probes = {}, recorded, hide = (value) => value }: ProbeOptions = {}): ProbeSession {
  const calls: ProbeCall[] = []
  const left = recorded === undefined ? null : [...recorded]
  const record = (call: ProbeCall): ProbeCall => {
    calls.push(call)
    return call
  }
  return {
    calls,
    work: { left: DECISION_WORK },
    call(name, celArgs) {
      if (calls.length >= MOST_CALLS) throw new Error(`one decision calls at most ${MOST_CALLS} probes`)
      const args = celArgs.map(fromCel)
      const shown = args.map(hide)
      const call = left
        ? record(take(left, name, shown))
        : record({ probe: name, args: shown, ...hidden(answer(probes, name, args), hide) })
      if ('error' in call) throw new Error(`the probe ${name} failed: ${call.error}`)
      return toCel(call.result)
    },
  }
}

function answer(probes: Probes, name: string, args: readonly Json[]): ProbeAnswer {
  const probe = Object.hasOwn(probes, name) ? probes[name] : undefined
  if (!probe) return { error: `there is no probe called ${name}` }
  try {
    return { result: fromCel(toCel(probe(...structuredClone(args)))) }
  } catch (error) {
    return { error: messageOf(error) }
  }
}

const hidden = (answered: ProbeAnswer, hide: (value: Json) => Json): ProbeAnswer =>
  'error' in answered ? { error: textOf(hide(answered.error)) } : { result: hide(answered.result) }

const textOf = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value))

function take(left: ProbeCall[], name: string, args: readonly Json[]): ProbeCall {
  const wanted = canonicalJson(args)
  const index = left.findIndex((call) => call.probe === name && canonicalJson(call.args) === wanted)
  const [call] = index < 0 ? [] : left.splice(index, 1)
  return call ?? { probe: name, args: [...args], error: 'this call was not recorded' }
}
