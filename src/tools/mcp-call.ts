import type { ToolSet } from 'ai'
import { withDeadline } from '../base/deadline.ts'
import { messageOf } from '../base/error-text.ts'
import type { McpServerSetting } from '../contract/settings/outside-tools.ts'
import { secretHider } from '../base/secrets.ts'
import type { Env } from '../env.ts'
import { CutOff } from './may-have-happened.ts'
import { mcpTools, type RefusedTool } from './mcp-tools.ts'
import { secretValues, secretHosts, secretOf, secretRefusal } from './tool-secrets.ts'

/** Time limit for closing a session: its calls have been answered by then. */
const LEAVE_MS = 1000

type McpSession = {
  env: Env
  scope: string
  fetch: typeof fetch
  allowed_hosts: readonly string[]
  signal: AbortSignal
  secrets?: readonly string[] | undefined
}

/** Removes the secrets of the request from the server's response. */
export type Hide = (value: unknown) => unknown

/** Connects to a server, lets `work` use its tools, and disconnects. */
export async function withMcpServer<Result>(
  setting: McpServerSetting,
  { env, scope, fetch: send, allowed_hosts, signal, secrets: named = [] }: McpSession,
  work: (listed: { tools: ToolSet; refused: readonly RefusedTool[] }, hide: Hide) => Promise<Result>,
): Promise<Result> {
  const { name, url, type, headers = {}, secret_headers = {} } = setting
  const refusal = secretRefusal(env, setting)
  if (refusal !== null) throw new Error(refusal)
  const secrets = secretValues(secret_headers, { name: `the MCP server ${name}`, secret: (key) => secretOf(env, key, scope) })
  // However short they are: these were sent there.
  const hide: Hide = secretHider(Object.values(secrets), 1).value
  // No request continues after the session was left.
  const left = new AbortController()
  const stopping = ((target: string, init: RequestInit = {}) =>
    send(target, { ...init, signal: AbortSignal.any([...(init.signal ? [init.signal] : []), signal, left.signal]) })) as typeof fetch
  const secret_hosts = [...Object.values(secret_headers), ...named].map((key) => secretHosts(env, key))
  const server = { url, headers: { ...headers, ...secrets }, ...(type ? { type } : {}) }
  try {
    const { close, ...listed } = await mcpTools(server, { allowed_hosts, secret_hosts, hide, fetch: stopping })
    try {
      return await work(listed, hide)
    } finally {
      await withDeadline(close, { timeout_ms: LEAVE_MS, what: 'leaving' }).catch(() => {})
    }
  } catch (error) {
    if (error instanceof CutOff) throw new CutOff(String(hide(error.message)), { cause: error })
    throw new Error(String(hide(messageOf(error))), { cause: error })
  } finally {
    left.abort()
  }
}

export async function callMcpTool(setting: McpServerSetting, tool: string, input: unknown, session: McpSession): Promise<unknown> {
  return withMcpServer(setting, session, async ({ tools, refused }, hide) => {
    const execute = Object.hasOwn(tools, tool) ? tools[tool]?.execute : undefined
    const refusal = refused.find(({ name }) => name === tool)
    if (refusal) throw new Error(`the tool ${tool} of the MCP server ${setting.name} is not available: ${refusal.reason}`)
    if (!execute)
      throw new Error(`the MCP server ${setting.name} has no tool ${tool}; it has ${Object.keys(tools).join(', ').slice(0, 500)}`)
    const options = { toolCallId: crypto.randomUUID(), messages: [], abortSignal: session.signal, context: {} }
    const output: unknown = hide(await execute(input, options))
    if (typeof output === 'object' && output !== null && 'isError' in output && output.isError === true)
      throw new Error(`${tool}: ${JSON.stringify('content' in output ? output.content : output).slice(0, 500)}`)
    return output
  })
}
