import { useSignal } from '@preact/signals'
import { visible } from './text.tsx'

const FIRST_ITEMS = 100
const FIRST_CHARACTERS = 2000

/**
 * JSON as a tree that opens part by part: what is closed is not rendered. `open` is the number of
 * levels open at first.
 */
export function Json({ value, open = 1, label }: { value: unknown; open?: number; label?: string }) {
  return (
    <div class="json" role="group" aria-label={label ?? 'JSON'}>
      <Node value={value} open={open} />
    </div>
  )
}

function Node({ name, value, open }: { name?: string; value: unknown; open: number }) {
  if (typeof value !== 'object' || value === null) {
    return (
      <div>
        <Name name={name} />
        <Leaf value={value} />
      </div>
    )
  }
  const entries = Object.entries(value)
  const brackets = Array.isArray(value) ? '[]' : '{}'
  if (entries.length === 0)
    return (
      <div>
        <Name name={name} />
        {brackets}
      </div>
    )
  return <Branch name={name} entries={entries} brackets={brackets} open={open} />
}

type BranchProps = { name: string | undefined; entries: [string, unknown][]; brackets: string; open: number }

function Branch({ name, entries, brackets, open }: BranchProps) {
  const isOpen = useSignal(open > 0)
  const shown = useSignal(FIRST_ITEMS)
  const isList = brackets === '[]'
  return (
    <details open={isOpen} onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}>
      <summary>
        <Name name={name} />
        <span class="quiet">{isList ? `[${entries.length}]` : `{${entries.length}}`}</span>
      </summary>
      {isOpen.value && (
        <div class="inside">
          {entries.slice(0, shown.value).map(([key, item]) => (
            <Node key={key} name={key} value={item} open={open - 1} />
          ))}
          {entries.length > shown.value && (
            <button type="button" onClick={() => (shown.value += 10 * FIRST_ITEMS)}>
              {entries.length - shown.value} more
            </button>
          )}
        </div>
      )}
    </details>
  )
}

const Name = ({ name }: { name: string | undefined }) => (name === undefined ? null : <b>{visible(name)}: </b>)

function Leaf({ value }: { value: unknown }) {
  const all = useSignal(false)
  if (typeof value !== 'string') return <span class={`json-${value === null ? 'null' : typeof value}`}>{String(value)}</span>
  const isLong = value.length > FIRST_CHARACTERS && !all.value
  return (
    <>
      <bdi class="json-string">"{visible(isLong ? value.slice(0, FIRST_CHARACTERS) : value)}"</bdi>
      {isLong && (
        <button type="button" onClick={() => (all.value = true)}>
          All {value.length.toLocaleString('en')} characters
        </button>
      )}
    </>
  )
}
