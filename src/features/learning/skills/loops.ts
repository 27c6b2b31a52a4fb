import { isJsonFields, sameJson, type Json } from '../../../base/json.ts'
import type { Call, CallLoop, TracedAct } from './trace.ts'

type List = { path: string; field: string | null; items: readonly Json[] }

/** Turns that must have made at least two calls for the items of a list before it counts as one. */
const LEAST_TURNS = 2
const MOST_LISTS = 50
const DEEPEST = 3
const PART = /^[\w-]{1,64}$/

/** Joins the calls that a turn made for each item of a list that an earlier call gave. */
export function withLoops(turns: readonly (readonly Call[])[]): Call[][] {
  const counts = new Map<string, number>()
  for (const calls of turns) for (const key of keysIn(calls)) counts.set(key, (counts.get(key) ?? 0) + 1)
  const known = new Set(Array.from(counts).flatMap(([key, count]) => (count >= LEAST_TURNS ? [key] : [])))
  return known.size === 0 ? turns.map((calls) => [...calls]) : turns.map((calls) => folded(calls, known))
}

/** The loops of at least two calls in a turn. */
function keysIn(calls: readonly Call[]): Set<string> {
  const keys = new Set<string>()
  for (let at = 1; at < calls.length - 1; at += 1) {
    if (calls[at]?.symbol !== calls[at + 1]?.symbol) continue
    for (const { key, loop } of loopsAt(calls, at)) if (loop.calls.length > 1) keys.add(key)
  }
  return keys
}

function folded(calls: readonly Call[], known: ReadonlySet<string>): Call[] {
  const result: Call[] = []
  for (let at = 0; at < calls.length;) {
    const call = calls[at]
    if (!call) break
    const found = loopsAt(calls, at).find(({ key }) => known.has(key))
    result.push(found ? { symbol: found.key, act: together(call.act, found.loop) } : call)
    at += found?.loop.calls.length ?? 1
  }
  return result
}

/** All loops that begin here: their calls are as many as the list has items, and no more follow. */
function loopsAt(calls: readonly Call[], at: number): { key: string; loop: CallLoop }[] {
  const first = calls[at]
  if (first?.act.kind !== 'tool') return []
  const texts = Object.entries(first.act.input).filter(([, value]) => typeof value === 'string' || typeof value === 'number')
  return texts.flatMap(([argument]) => {
    const sources = new Map<string, Call>()
    for (const call of calls.slice(0, at)) if (call.symbol !== first.symbol) sources.set(call.symbol, call)
    return Array.from(sources.values()).flatMap((source) =>
      listsIn(source.act.output).flatMap(({ path, field, items }) => {
        const own = calls.slice(at, at + items.length).map(({ act }) => act)
        const next = calls[at + items.length]
        const isMade = items.every(
          (item, index) => calls[at + index]?.symbol === first.symbol && sameJson(own[index]?.input[argument], item),
        )
        if (!isMade || next?.symbol === first.symbol || !own.every((act) => sameRest(act, first.act, argument))) return []
        const key = `${first.symbol} for each ${[path, field].filter(Boolean).join(' ')} of ${source.symbol}, as ${argument}`
        return [{ key, loop: { argument, source: source.symbol, path, field, calls: own } }]
      }),
    )
  })
}

const sameRest = (one: TracedAct, other: TracedAct, argument: string): boolean =>
  sameJson({ ...one.input, [argument]: null }, { ...other.input, [argument]: null })

/** Joins calls to one with the costs of all, without the argument that differs. */
function together(first: TracedAct, loop: CallLoop): TracedAct {
  const { [loop.argument]: _item, ...input } = first.input
  return {
    ...first,
    input,
    output: loop.calls.map(({ output }) => output ?? null),
    ok: loop.calls.every(({ ok }) => ok),
    cost_usd: loop.calls.reduce((sum, { cost_usd }) => sum + cost_usd, 0),
    duration_ms: loop.calls.reduce((sum, { duration_ms }) => sum + duration_ms, 0),
    loop,
  }
}

/** The lists of texts and numbers in an output, and the fields that all items of a list have. */
function listsIn(output: unknown): List[] {
  const lists: List[] = []
  const isOne = (value: unknown): value is Json => typeof value === 'string' || typeof value === 'number'
  const add = (path: string, items: readonly unknown[]): void => {
    const [first] = items
    if (items.every(isOne)) lists.push({ path, field: null, items })
    else if (isJsonFields(first) && items.every(isJsonFields)) {
      for (const field of Object.keys(first)) {
        const own = items.map((item) => item[field])
        if (PART.test(field) && own.every(isOne)) lists.push({ path, field, items: own })
      }
    }
  }
  const visit = (value: unknown, path: readonly string[]): void => {
    if (lists.length >= MOST_LISTS) return
    if (Array.isArray(value) && value.length > 0 && path.length > 0) add(path.join('.'), value)
    if (!isJsonFields(value) || path.length >= DEEPEST) return
    for (const [name, inner] of Object.entries(value)) if (PART.test(name)) visit(inner, [...path, name])
  }
  visit(output, [])
  return lists
}
