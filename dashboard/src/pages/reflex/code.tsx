import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { part, useGet } from '../../api/index.ts'
import { Loaded } from '../../ui/feedback.tsx'
import { Select } from '../../ui/form.tsx'
import { SEALED, visible } from '../../ui/text.tsx'
import './code.css'

/** A line of two texts side by side; null where a side has none. */
type Pair = { left: Line | null; right: Line | null }
type Line = { number: number; text: string }

/** Beyond so many pairs of lines, all between the common begin and end counts as changed. */
const MOST_CELLS = 4_000_000

/** The lines of two texts, aligned by the longest common subsequence. */
function sideBySide(left: string, right: string): Pair[] {
  const one = left.split('\n')
  const other = right.split('\n')
  let head = 0
  while (head < Math.min(one.length, other.length) && one[head] === other[head]) head += 1
  let tail = 0
  while (tail < Math.min(one.length, other.length) - head && one.at(-1 - tail) === other.at(-1 - tail)) tail += 1
  const olds = one.slice(head, one.length - tail)
  const news = other.slice(head, other.length - tail)
  const same = (from: number, length: number, shift: number): Pair[] =>
    Array.from({ length }, (_, index) => {
      const text = one[from + index] ?? ''
      return { left: { number: from + index + 1, text }, right: { number: from + shift + index + 1, text } }
    })
  return [...same(0, head, 0), ...aligned(olds, news, head), ...same(one.length - tail, tail, other.length - one.length)]
}

function aligned(olds: readonly string[], news: readonly string[], head: number): Pair[] {
  const width = news.length + 1
  const isTooLong = olds.length * news.length > MOST_CELLS
  const lengths = new Uint16Array(isTooLong ? 0 : (olds.length + 1) * width)
  const at = (row: number, column: number) => lengths[row * width + column] ?? 0
  if (!isTooLong)
    for (let row = olds.length - 1; row >= 0; row -= 1)
      for (let column = news.length - 1; column >= 0; column -= 1)
        lengths[row * width + column] =
          olds[row] === news[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1))
  const pairs: Pair[] = []
  const gone: Line[] = []
  const come: Line[] = []
  const flush = () => {
    for (let index = 0; index < Math.max(gone.length, come.length); index += 1)
      pairs.push({ left: gone[index] ?? null, right: come[index] ?? null })
    gone.length = come.length = 0
  }
  let row = 0
  let column = 0
  while (row < olds.length || column < news.length) {
    const old = olds[row]
    const fresh = news[column]
    if (old !== undefined && old === fresh) {
      flush()
      pairs.push({ left: { number: head + row + 1, text: old }, right: { number: head + column + 1, text: fresh } })
      row += 1
      column += 1
    } else if (fresh === undefined || (old !== undefined && at(row + 1, column) >= at(row, column + 1))) {
      gone.push({ number: head + row + 1, text: old ?? '' })
      row += 1
    } else {
      come.push({ number: head + column + 1, text: fresh })
      column += 1
    }
  }
  flush()
  return pairs
}

type CodeVersion = { version: number | string; state: string }
type CodeProps = { kind: 'reflexes' | 'skills'; id: string; versions: readonly CodeVersion[] }
type Content = { code?: string | null; manifest?: unknown }

/** A version, or two side by side with what differs. */
export function Versions({ kind, id, versions }: CodeProps) {
  const [newest, before] = versions
  const right = useSignal(String(newest?.version ?? ''))
  const left = useSignal(String(before?.version ?? ''))
  const named = Object.fromEntries(versions.map(({ version, state }) => [String(version), `${version} (${state})`]))
  const pathOf = (version: string) => (version === '' ? null : `/v1/${kind}/${part(`${id}@${version}`)}`)
  const one = useGet<Content>(pathOf(right.value))
  const two = useGet<Content>(pathOf(left.value))
  return (
    <>
      <div class="actions">
        <Select label="Version" value={right.value} options={named} onChange={(version) => (right.value = version)} />
        <Select
          label="Compare with"
          value={left.value}
          options={{ '': 'nothing', ...named }}
          onChange={(version) => (left.value = version)}
        />
      </div>
      <Loaded data={one}>
        {(shown) =>
          left.value === '' ? (
            <pre tabIndex={0} aria-label={`Content of ${id}@${right.value}`}>
              {visible(textOf(shown))}
            </pre>
          ) : (
            <Loaded data={two}>{(old) => <Diff names={[left.value, right.value]} texts={[textOf(old), textOf(shown)]} />}</Loaded>
          )
        }
      </Loaded>
    </>
  )
}

const textOf = ({ code, manifest }: Content): string => code ?? (manifest ? JSON.stringify(manifest, null, 2) : SEALED)

/** Unchanged lines that are shown around a change. */
const AROUND = 3

function Diff({ names, texts: [old, fresh] }: { names: [string, string]; texts: [string, string] }) {
  const pairs = useMemo(() => sideBySide(old, fresh), [old, fresh])
  const kept = useMemo(() => pairs.map((_, index) => pairs.slice(Math.max(0, index - AROUND), index + AROUND + 1).some(differs)), [pairs])
  if (!pairs.some(differs)) return <p>Both versions are the same.</p>
  return (
    <div class="table diff" tabIndex={0} role="region" aria-label="Difference">
      <table>
        <colgroup>
          <col class="number" />
          <col />
          <col class="number" />
          <col />
        </colgroup>
        <thead>
          <tr>
            <th scope="col" colSpan={2}>
              Version {names[0]}
            </th>
            <th scope="col" colSpan={2}>
              Version {names[1]}
            </th>
          </tr>
        </thead>
        <tbody>
          {pairs.map((pair, index) =>
            kept[index] ? (
              <Row key={index} pair={pair} />
            ) : kept[index - 1] || index === 0 ? (
              <tr key={index}>
                <td colSpan={4} class="quiet">
                  ⋯
                </td>
              </tr>
            ) : null,
          )}
        </tbody>
      </table>
    </div>
  )
}

const differs = ({ left, right }: Pair): boolean => left?.text !== right?.text

function Row({ pair }: { pair: Pair }) {
  const { left, right } = pair
  const isChanged = differs(pair)
  return (
    <tr>
      <td class="quiet numeric">{left?.number}</td>
      <td class={isChanged && left ? 'gone' : ''}>{left && (isChanged ? <del>{visible(left.text)}</del> : visible(left.text))}</td>
      <td class="quiet numeric">{right?.number}</td>
      <td class={isChanged && right ? 'come' : ''}>{right && (isChanged ? <ins>{visible(right.text)}</ins> : visible(right.text))}</td>
    </tr>
  )
}
