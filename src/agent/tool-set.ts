import { tool, type ToolSet } from 'ai'
import { shownNames } from '../tools/define-tool.ts'
import type { AgentDeps } from './define-agent.ts'
import type { Toolbox } from './toolbox.ts'

/** The tools that a model may call, for the AI SDK. */
export function toolSet(toolbox: Toolbox, call: AgentDeps['call']): ToolSet {
  const entries = toolbox.entries()
  const shown = shownNames(entries.map(([name]) => name))
  return Object.fromEntries(
    entries.map(([name, { description, input, shown_input = input }], index) => [
      shown[index] ?? name,
      tool({ description, inputSchema: shown_input, execute: (value: unknown) => call(name, value) }),
    ]),
  )
}
