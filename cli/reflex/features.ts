import { existsSync, readdirSync } from 'node:fs'
import { extname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Resource } from '../../src/contract/operation.ts'

// The list of the features names what runs in a Worker, which Node cannot import.
const folder = join(import.meta.dirname, '../../src/features')
const files = readdirSync(folder)
  .map((name) => join(folder, name, `resources${extname(import.meta.filename)}`))
  .filter((file) => existsSync(file))
const declared = await Promise.all(files.map((file) => import(pathToFileURL(file).href) as Promise<{ resources: readonly Resource[] }>))

/** The resources in the files `resources.ts` of the features, in the order of their names. */
export const resources: readonly Resource[] = declared.flatMap((module) => module.resources)
