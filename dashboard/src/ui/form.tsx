type Choices = readonly string[] | Readonly<Record<string, string>>
type SelectProps = { label: string; value: string; options: Choices; onChange: (value: string) => void; stacked?: boolean }

/** A choice with its label. Options are texts, or texts by their values. */
export function Select({ label, value, options, onChange, stacked = false }: SelectProps) {
  const entries = Array.isArray(options) ? options.map((option: string) => [option, option] as const) : Object.entries(options)
  return (
    <label class={stacked ? '' : 'inline'}>
      {label}
      <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        {entries.map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}

type FieldProps = {
  label: string
  value: string
  onInput: (value: string) => void
  rows?: number
  required?: boolean
  placeholder?: string
  stacked?: boolean
  /** For a secret. */
  masked?: boolean
}

/** A text to write, of several lines if it has rows. */
export function Field({ label, value, onInput, rows, stacked = true, masked = false, ...rest }: FieldProps) {
  const field = {
    ...rest,
    value,
    spellcheck: false,
    autocomplete: 'off' as const,
    onInput: ({ currentTarget }: { currentTarget: HTMLInputElement | HTMLTextAreaElement }) => onInput(currentTarget.value),
  }
  return (
    <label class={stacked ? '' : 'inline'}>
      {label}
      {masked ? <input type="password" {...field} /> : rows === undefined ? <input {...field} /> : <textarea rows={rows} {...field} />}
    </label>
  )
}
