import { defaultSettings, type Settings } from '../../src/contract/settings/settings.ts'
import type { Event } from '../../src/core/event.ts'
import { CallOrigins } from '../../src/engine/effects/call-origins.ts'

type Given = { events: () => readonly Event[]; settings?: Partial<Settings> }

/** The origins of calls in a scope whose log is empty. `events` gives what its context has. */
export function callOriginsOf({ events, settings = {} }: Given): CallOrigins {
  const all = { ...defaultSettings, ...settings }
  return new CallOrigins({
    database: { all: () => [] },
    memory: {
      live: {
        get events() {
          return events()
        },
      },
    },
    settings: () => all,
    log: { last: 0, find: () => ({ found: [], reached: 0 }), clean: (value: unknown) => value },
    programs: { find: () => null },
    toolbox: {},
  } as unknown as ConstructorParameters<typeof CallOrigins>[0])
}
