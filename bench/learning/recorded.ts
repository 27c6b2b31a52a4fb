import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isJsonFields, type JsonFields } from '../../src/base/json.ts'
import type { EpisodeAct } from '../../src/features/learning/episode.ts'
import { hashOf } from './draw.ts'
import { type Input, itemsOf, type Item } from './inputs.ts'
import { sameActs } from './words.ts'

/** A decision of a real model: what it was asked, and all calls that it made before it spoke. */
type Decision = { asked: string; acts: EpisodeAct[] }
/** The decisions of a teacher. `runs`: the recorded files or conversations that they are from. */
type Recorded = { teacher: string; runs: number; decisions: Decision[] }

/** `first_differs`: further decisions about an equal text that differ from the first one. */
export type Teacher = Input & { runs: number; asked_again: number; first_differs: number }

/**
 * The runs of real models in a folder: `runs/` of github.com/AthaSSiN/CrAIBench, and the file
 * `gpt-4o-airline.json` of `historical_trajectories/` in github.com/sierra-research/tau-bench.
 */
export function recordedTeachers(directory: string): Teacher[] {
  const files = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.json'))
  const read = (file: string): unknown => JSON.parse(readFileSync(join(directory, file), 'utf8'))
  const runs = files.toSorted().filter((file) => file.split(/[/\\]/).includes('runs'))
  const byTeacher = Map.groupBy(
    runs.map((file) => read(file) as Run),
    ({ pipeline_name }) => pipeline_name,
  )
  const recorded = Array.from(byTeacher, ([teacher, own]): Recorded => ({ teacher, runs: own.length, decisions: own.map(wholeRun) }))
  const airline = files.find((file) => file.endsWith('gpt-4o-airline.json'))
  if (airline !== undefined) recorded.push(conversations(read(airline) as Conversation[]))
  return recorded.map(teacherOf)
}

type Message = {
  role: string
  content: string | null
  tool_calls?: { function: string | { name: string; arguments: string }; args?: JsonFields }[] | null
}
type Run = { pipeline_name: string; messages: Message[] }
type Conversation = { traj: Message[] }

/** A run is one decision: all of its calls about what the user and the memory said. */
function wholeRun({ messages }: Run): Decision {
  const asked = messages.flatMap(({ role, content }) => (role === 'user' ? [content ?? ''] : []))
  return { asked: asked.join('\n'), acts: callsIn(messages) }
}

/** Each message of the user is an event, decided by the calls before the next message. */
function conversations(all: readonly Conversation[]): Recorded {
  const decisions = all.flatMap(({ traj }) =>
    traj.flatMap(({ role, content }, index): Decision[] => {
      if (role !== 'user') return []
      const rest = traj.slice(index + 1)
      const next = rest.findIndex((message) => message.role === 'user')
      return [{ asked: content ?? '', acts: callsIn(next === -1 ? rest : rest.slice(0, next)) }]
    }),
  )
  return { teacher: 'gpt-4o, airline of tau-bench', runs: all.length, decisions }
}

/** The calls of the model with the outputs that followed, in order. */
function callsIn(messages: readonly Message[]): EpisodeAct[] {
  const outputs = messages.flatMap(({ role, content }) => (role === 'tool' ? [content ?? ''] : []))
  const calls = messages.flatMap(({ tool_calls }) => tool_calls ?? [])
  return calls.map((call, index): EpisodeAct => {
    const [name, input] =
      typeof call.function === 'string'
        ? [call.function, call.args ?? {}]
        : [call.function.name, JSON.parse(call.function.arguments) as unknown]
    return {
      kind: 'tool',
      name,
      input: isJsonFields(input) ? input : {},
      output: outputs[index] ?? '',
      ok: true,
      cost_usd: 0,
      duration_ms: 0,
    }
  })
}

const HOUR = 3_600_000

function teacherOf({ teacher, runs, decisions }: Recorded): Teacher {
  const drawn = decisions.map((decision, index) => ({ ...decision, draw: hashOf(`${teacher} ${index}`) }))
  drawn.sort((one, other) => one.draw - other.draw)
  const items = itemsOf(drawn.map(({ asked, acts }, index) => ({ asked, at: index * HOUR, acts })))
  const byText = Map.groupBy(items, textOf)
  const repeated = Array.from(byText.values()).filter(({ length }) => length > 1)
  const further = repeated.flatMap(([first, ...rest]) => rest.map((item) => sameActs(item.label, first?.label ?? [])))
  /** Asked again, the slow path answers with another run on the same text. */
  const again = (item: Pick<Item, 'id' | 'label'>, attempt: number): EpisodeAct[] => {
    const own = items.find(({ id }) => id === item.id)
    const same = own ? (byText.get(textOf(own)) ?? []) : []
    const at = same.findIndex(({ id }) => id === item.id)
    return same[(at + attempt) % Math.max(1, same.length)]?.label ?? item.label
  }
  const name = teacher.replace('-spotlighting_with_', ', ')
  return {
    name,
    items,
    trusted: new Set(['bench']),
    again,
    runs,
    asked_again: further.length,
    first_differs: further.filter((isSame) => !isSame).length,
  }
}

const textOf = ({ saw: { event } }: Item): string => JSON.stringify(Object.entries(event).filter(([name]) => name.startsWith('x')))
