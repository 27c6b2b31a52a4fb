import { useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import { visible } from '../../../ui/text.tsx'
import { kindOf, same, type Schema } from './schema.ts'

type FieldProps = { name: string; schema: Schema; value: unknown; disabled: boolean; onChange: (value: unknown) => void; label?: string }

/** One setting as its schema describes it. `undefined` is "not set". */
export function Field(props: FieldProps) {
  const { name, schema, value, disabled, onChange } = props
  const id = useId()
  if (kindOf(schema) !== 'group') {
    return (
      <div class="field">
        <label for={id}>{props.label ?? name}</label>
        <Input {...props} id={id} />
        <Help id={`${id}-help`} text={schema.description} />
      </div>
    )
  }
  const parts = (typeof value === 'object' ? value : {}) as Record<string, unknown>
  return (
    <fieldset class="field" disabled={disabled}>
      <legend>{name}</legend>
      <Help id={id} text={schema.description} />
      {Object.entries(schema.properties ?? {}).map(([part, of]) => (
        <Field
          key={part}
          name={`${name}.${part}`}
          label={part}
          schema={of}
          value={parts[part]}
          disabled={disabled}
          onChange={(changed) => onChange({ ...parts, [part]: changed })}
        />
      ))}
    </fieldset>
  )
}

function Input({ id, schema, value, disabled, onChange }: FieldProps & { id: string }) {
  const common = { id, disabled, 'aria-describedby': `${id}-help` }
  switch (kindOf(schema)) {
    case 'choice':
      return (
        <select {...common} value={textOf(value)} onChange={({ currentTarget }) => onChange(currentTarget.value || undefined)}>
          {value === undefined && <option value="">not set</option>}
          {schema.enum?.map((option) => (
            <option key={option}>{option}</option>
          ))}
        </select>
      )
    case 'number':
      return (
        <input
          {...common}
          type="number"
          step={schema.type === 'integer' ? 1 : 'any'}
          min={schema.minimum}
          max={schema.maximum}
          value={typeof value === 'number' ? value : ''}
          onInput={({ currentTarget: { value: text } }) => onChange(text === '' ? undefined : Number(text))}
        />
      )
    case 'switch':
      return (
        <input {...common} type="checkbox" checked={value === true} onChange={({ currentTarget }) => onChange(currentTarget.checked)} />
      )
    case 'line':
    case 'text': {
      const text = { ...common, maxLength: schema.maxLength, value: textOf(value) }
      const typed = ({ currentTarget }: { currentTarget: HTMLInputElement | HTMLTextAreaElement }) =>
        onChange(currentTarget.value || undefined)
      return kindOf(schema) === 'line' ? <input {...text} onInput={typed} /> : <textarea {...text} rows={4} onInput={typed} />
    }
    case 'lines':
      return <Written common={common} value={value} form={asLines(value)} onChange={onChange} />
    case 'group':
    case 'json':
      break
  }
  return <Written common={common} value={value} form={asJson} onChange={onChange} />
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** A written form of a value. `parse` throws if the text is not in this form. */
type Form = { hint: string; print: (value: unknown) => string; parse: (text: string) => unknown }

const asJson: Form = {
  hint: 'JSON',
  print: (value) => (value === undefined ? '' : JSON.stringify(value, null, 2)),
  parse: (text) => (text.trim() === '' ? undefined : JSON.parse(text)),
}
/** No lines: not set where it was not set, an empty list otherwise. */
const asLines = (before: unknown): Form => ({
  hint: 'One on each line',
  print: (value) => (Array.isArray(value) ? value.join('\n') : ''),
  parse(text) {
    const lines = text.split('\n').flatMap((line) => line.trim() || [])
    return lines.length === 0 && before === undefined ? undefined : lines
  },
})

type Common = { id: string; disabled: boolean; 'aria-describedby': string }
type WrittenProps = { common: Common; value: unknown; form: Form; onChange: (value: unknown) => void }

/** The text is kept as it is typed, until the value changes elsewhere. */
function Written({ common, value, form: { hint, print, parse }, onChange }: WrittenProps) {
  const typed = useSignal({ text: print(value), value, flaw: '' })
  if (typed.value.flaw === '' && !same(typed.value.value, value)) typed.value = { text: print(value), value, flaw: '' }
  const change = ({ currentTarget }: { currentTarget: HTMLTextAreaElement }) => {
    const text = currentTarget.value
    try {
      const parsed = parse(text)
      typed.value = { text, value: parsed, flaw: '' }
      onChange(parsed)
    } catch (error) {
      typed.value = { text, value, flaw: String(error) }
    }
    currentTarget.setCustomValidity(typed.value.flaw)
  }
  const { text, flaw } = typed.value
  return (
    <>
      <textarea {...common} rows={4} spellcheck={false} placeholder={hint} aria-invalid={flaw !== ''} value={text} onInput={change} />
      {flaw !== '' && <span class="bad">{visible(flaw)}</span>}
    </>
  )
}

/** Descriptions write names between backticks. */
const Help = ({ id, text = '' }: { id: string; text?: string | undefined }) => (
  <small id={id} class="quiet">
    {text.split('`').map((piece, index) => (index % 2 === 1 ? <code key={index}>{piece}</code> : piece))}
  </small>
)
