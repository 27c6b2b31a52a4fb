import type { LanguageModelV4Prompt } from '@ai-sdk/provider'

/** SHA-256 of the prompt as JSON, 64 hex digits: a replay finds the recorded answer to the same prompt by it. */
export async function promptHash(prompt: LanguageModelV4Prompt): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(JSON.stringify(prompt)))
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}
