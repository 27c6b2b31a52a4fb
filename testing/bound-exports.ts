import { unstable_readConfig } from 'wrangler'

/** The classes, and handlers of the default export, that a wrangler.toml needs of a module. */
export type BoundExports = { classes: string[]; handlers: string[] }
type Binding = { class_name: string; script_name?: string | undefined }

export function boundExports(configPath: string): BoundExports {
  const { durable_objects, exports = {}, queues, triggers } = unstable_readConfig({ config: configPath }, { hideWarnings: true })
  const own = (durable_objects.bindings as Binding[]).filter(({ script_name }) => script_name === undefined)
  return {
    classes: [...new Set([...own.map(({ class_name }) => class_name), ...Object.keys(exports)])],
    handlers: [
      'fetch',
      ...((queues.consumers ?? []).length > 0 ? ['queue'] : []),
      ...((triggers.crons ?? []).length > 0 ? ['scheduled'] : []),
    ],
  }
}
