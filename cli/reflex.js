#!/usr/bin/env -S node --disable-warning=ExperimentalWarning
// Plain JavaScript, for versions of Node that cannot read TypeScript: they start the one that the
// package brings.
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'

if (process.features.typescript) {
  // The next run starts in half of the time: it reads what this one has compiled.
  const { enableCompileCache } = await import('node:module')
  enableCompileCache()
  const { main } = await import('./reflex/main.ts')
  process.exitCode = await main(process.argv.slice(2))
} else {
  const node = nodeOfPackage()
  const child = spawn(node, ['--disable-warning=ExperimentalWarning', import.meta.filename, ...process.argv.slice(2)], {
    stdio: 'inherit',
    env: { ...process.env, REFLEX_SHELL_NODE: process.version },
  })
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => child.kill(name))
  child.on('exit', (code) => process.exit(code ?? 1))
}

function nodeOfPackage() {
  try {
    return createRequire(import.meta.url).resolve('node/bin/node')
  } catch {
    throw new Error(
      `reflex needs Node 22.18 or later; this is ${process.version}. Run npm install in the folder of Reflex, which brings one, or update Node.`,
    )
  }
}
