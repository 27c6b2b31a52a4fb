import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { part, useGet } from '../../api/index.ts'
import { Loaded } from '../../ui/feedback.tsx'
import { Select } from '../../ui/form.tsx'
import { SEALED, visible } from '../../ui/text.tsx'
import { sideBySide, type Pair } from './diff.ts'
import './code.css'

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
