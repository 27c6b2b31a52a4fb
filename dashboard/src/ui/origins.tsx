import type { Doubt } from '../../../src/contract/origin.ts'
import { useGet } from '../api/index.ts'
import { Text, visible } from './text.tsx'

/** A call as its log entry and its approval have it (docs/security.md). */
export type ShownCall = { input: unknown; origins?: readonly Doubt[]; named_by?: Readonly<Record<string, string>> }

const isWithin = (path: string, argument: string): boolean => path === argument || path.startsWith(`${argument}.`)

/**
 * Each argument of a call with what named it. A list or an object has the origins of its parts.
 * `of`: the call, where several stand below each other.
 */
export function Origins({ call: { input, origins = [], named_by = {} }, of }: { call: ShownCall; of?: string | undefined }) {
  const given = Object.entries((typeof input === 'object' ? input : null) ?? {})
  if (given.length === 0) return null
  return (
    <>
      <h3>Where {of === undefined ? 'its arguments' : `the arguments of ${visible(of)}`} come from</h3>
      <ul>
        {given.map(([argument, value]) => {
          const doubts = origins.filter(({ argument: path }) => isWithin(path, argument))
          const named = Object.entries(named_by).filter(([path]) => isWithin(path, argument))
          return (
            <li key={argument}>
              <b>{visible(argument)}</b> <Text text={typeof value === 'string' ? value : JSON.stringify(value)} most={100} />:{' '}
              {doubts.length + named.length === 0 && <span class="quiet">not a value that this scope was given</span>}
              {[...new Set(named.map(([, origin]) => origin))].map((origin) => (
                <code key={origin}>{visible(origin)} </code>
              ))}
              {doubts.map(({ value: doubted, origin, around }) => (
                <span key={doubted} class="bad">
                  in doubt, <code>{visible(origin)}</code>
                  {around !== undefined && (
                    <>
                      : “
                      <Text text={around} />”
                    </>
                  )}{' '}
                </span>
              ))}
            </li>
          )
        })}
      </ul>
    </>
  )
}

type ListedCall = ShownCall & { tool: string; seq: number }

/** The calls that an address lists, each with what named its arguments. `seqs`: only these. */
export function ListedOrigins({ at, seqs }: { at: string; seqs?: readonly number[] }) {
  const { value } = useGet<{ items: ListedCall[] }>(at)
  return value?.items
    .filter(({ seq }) => seqs?.includes(seq) ?? true)
    .map((call, index) => <Origins key={index} call={call} of={`${index + 1}, ${call.tool}`} />)
}
