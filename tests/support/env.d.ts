/// <reference types="@cloudflare/vitest-plugin/types" />
import type { D1Migration } from 'cloudflare:test'
import type { Env as ReflexEnv } from '../../src/env.ts'

declare global {
  namespace Cloudflare {
    interface Env extends ReflexEnv {
      MIGRATIONS: D1Migration[]
      TEST_ARCHIVE: R2Bucket
      /** The database of another deployment: tests/support/control-plane.ts. */
      CONTROL_DB: D1Database
      TEST_EVENTS_DB_1: D1Database
      TEST_EVENTS_DB_2: D1Database
    }
  }
}
