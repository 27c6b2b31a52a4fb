import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { Flag, CommandForm } from '../../../src/contract/shown.ts'
import { address, post } from '../api/index.ts'
import { submitted, useAction } from '../api/use-action.ts'
import { ErrorBox } from './feedback.tsx'

type Field = {
  name: string
  help: string
  is: 'text' | 'whole' | 'words' | 'instant'
  required: boolean
  choices?: readonly string[] | undefined
}

/** The fields of a command: its arguments that are not in the path, and its options. */
function fieldsOf({ at, usage, flags }: CommandForm): Field[] {
  const words = usage.match(/<[^>]+>/g) ?? []
  const further = words.slice(at.split('{').length - 1)
  return [...further.map((word) => ({ name: word.slice(1, -1), help: '', is: 'text' as const, required: true })), ...flags.map(fieldOf)]
}

export function fieldOf([text, help, { field, is, required, choices } = {}]: Flag): Field {
  const [, option = '', value = ''] = /^--([\w-]+) ?(.*)$/.exec(text) ?? []
  return {
    name: field ?? option.replaceAll('-', '_'),
    help,
    is: value.endsWith('...>') ? 'words' : is === 'whole' || is === 'instant' ? is : 'text',
    required: required === true,
    choices,
  }
}

const labelOf = (name: string): string => {
  if (name === 'q') return 'Search'
  const text = name.replace(/_s$/, '_in_seconds').replaceAll('_', ' ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

type RequestFormProps<Answered> = {
  of: CommandForm
  /** The parts of the path, and fields that have their value already. */
  given: Record<string, string>
  verb: ComponentChildren
  onDone: (answer: Answered) => void
}

/** A form for a request: each option of its command is a field. Sending it twice acts once. */
export function RequestForm<Answered>({ of, given, verb, onDone }: RequestFormProps<Answered>) {
  const id = useSignal(crypto.randomUUID())
  const fields = fieldsOf(of).filter(({ name }) => name !== 'id' && !(name in given))
  const in_path = [...of.at.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  const { run, busy, problem } = useAction((body: object) => post<Answered>(address(of.at, pick(given, in_path)), body))
  const submit = async (event: SubmitEvent) => {
    const valueOf = submitted(event)
    const written = fields.filter(({ name }) => valueOf(name) !== '')
    const values = written.map(({ name, is }) => [name, parsed(valueOf(name), is)])
    const fixed = Object.fromEntries(Object.entries(given).filter(([name]) => !in_path.includes(name)))
    const own = of.flags.some(([text]) => text.startsWith('--id ')) ? { id: id.value } : {}
    const answer = await run({ ...own, ...fixed, ...Object.fromEntries(values) })
    if (!answer.ok) return
    // The next press is another request.
    id.value = crypto.randomUUID()
    onDone(answer.value)
  }
  return (
    <form class="filters" onSubmit={(event) => void submit(event)}>
      {fields.map((field) => (
        <FormField key={field.name} field={field} />
      ))}
      <button type="submit" class="primary" disabled={busy}>
        {verb}
      </button>
      <ErrorBox problem={problem} />
    </form>
  )
}

export const FormField = ({ field: { name, help, is, required, choices }, value }: { field: Field; value?: string | undefined }) => (
  <label class="inline">
    {labelOf(name)}{' '}
    {choices && !required ? (
      <select name={name} title={help}>
        {['', ...choices].map((choice) => (
          <option key={choice} value={choice} selected={choice === (value ?? '')}>
            {choice || 'any'}
          </option>
        ))}
      </select>
    ) : (
      <input
        name={name}
        placeholder={help}
        required={required}
        defaultValue={is === 'instant' ? localTime(value) : value}
        {...(is === 'whole' && { type: 'number', min: 1 })}
        {...(is === 'instant' && { type: 'datetime-local' })}
      />
    )}
  </label>
)

/** A time as the field of a browser has it: Swedes write it so. Any other text leaves it empty. */
const localTime = (instant = ''): string => instant && new Date(instant).toLocaleString('sv').slice(0, 16)

/** The value of a field whose text is not empty. */
export function parsed(text: string, is: Field['is']): string | number | string[] {
  if (is === 'whole') return Number(text)
  if (is === 'words') return text.match(/\S+/g) ?? []
  return is === 'instant' ? new Date(text).toISOString() : text
}

const pick = (given: Record<string, string>, names: readonly string[]) =>
  Object.fromEntries(Object.entries(given).filter(([name]) => names.includes(name)))
