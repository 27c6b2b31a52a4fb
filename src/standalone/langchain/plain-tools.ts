import type { BindToolsInput } from '@langchain/core/language_models/chat_models'
import { convertToOpenAITool } from '@langchain/core/utils/function_calling'
import { withoutMarks } from '../../skills/asp/blocks.ts'

/**
 * The tools as a model is told of them, in whose descriptions and parameters nothing looks like a part of the
 * protocol. One that holds nothing of it stays the object that it is, for providers know their own forms.
 */
export const plainTools = (tools: BindToolsInput[]): BindToolsInput[] => tools.map(plainTool)

function plainTool(bound: BindToolsInput): BindToolsInput {
  const told = 'invoke' in bound ? (convertToOpenAITool(bound) as BindToolsInput) : bound
  const plain = withoutMarks(told)
  return plain === told ? bound : plain
}
