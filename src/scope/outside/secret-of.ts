import type { Env } from '../../bindings.ts'

/** A secret of the deployment, by a name that the settings' schema has let through: it begins with REFLEX_TOOL_. */
export function secretOf(env: Env, name: string): string | undefined {
  const value: unknown = Reflect.get(env, name)
  return typeof value === 'string' ? value : undefined
}
