import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { sha256 } from '../base/hash.ts'

/** SHA-256 of the prompt as JSON. A replay uses it to find the recorded response. */
export const promptHash = (prompt: LanguageModelV4Prompt): Promise<string> => sha256(JSON.stringify(prompt))
