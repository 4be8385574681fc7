"""Send a folder of Markdown notes to a memory server: Zibaldone, or Graphiti.

As a library: `await push_folder(PushOptions(...))` in `zibaldone.push.run`.
"""
