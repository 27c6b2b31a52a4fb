import { defineConfig } from 'vitest/config'
import { reflexTest } from './config.ts'

/** The configuration of `reflex test` in a project that has none. */
export default defineConfig({ plugins: [reflexTest()], test: { isolate: false, maxWorkers: 1 } })
