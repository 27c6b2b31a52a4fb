import { readFileSync } from 'node:fs'
import { CliError } from '../../cli/lib/cli-error.ts'
import { mails, type Labelled } from './mails.ts'

const WEEK_MS = 7 * 86_400_000
/** Labels that mean that nothing is to be done. */
const NOTHING = new Set(['', 'ham', 'none', 'nothing'])
const MOST_TEXT = 2000

export type Message = { id: string; timestamp: string; source: string; text: string; label: string | null }

/** The messages of a week that ends now, each with the decision that the model will take. */
export function readInput({ file, most, now }: { file: string | null; most: number; now: number }): Message[] {
  const all = (file === null ? mails(most) : labelled(file)).slice(0, most)
  return all.map(({ source, text, label }, index) => ({
    id: `message-${index + 1}`,
    timestamp: new Date(now - WEEK_MS + (index * WEEK_MS) / all.length).toISOString(),
    source,
    text,
    label,
  }))
}

/** Lines of a label, a tab and a text; further columns are left out. */
function labelled(file: string): Labelled[] {
  const rows = read(file)
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '')
    .map((line) => line.split('\t'))
  const broken = rows.findIndex(([label = '', text = '']) => text === '' || label.length > 64)
  if (rows.length === 0) throw new CliError(`${file} has no lines.`)
  if (broken >= 0)
    throw new CliError(`Line ${broken + 1} of ${file} is not a label, a tab and a text.`, 'Each line needs the decision first.')
  return rows.map(([label = '', text = ''], index) => ({
    source: `sender:${index % 200}`,
    text: text.slice(0, MOST_TEXT),
    label: NOTHING.has(label.toLowerCase()) ? null : label,
  }))
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new CliError(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
}
