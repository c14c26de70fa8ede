import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

/** Those of `shared` are otherwise named after all that share them. */
function namedIn({ name = "" }: { name?: string }, ending: string): string {
  return `assets/${name.startsWith("shared") ? "shared" : "[name]"}-[hash]${ending}`;
}

// The hub serves the page below /page/; everything it needs is inside the bundle.
export default defineConfig({
  base: "/page/",
  plugins: [svelte()],
  build: {
    outDir: "../fairway/page/built",
    emptyOutDir: true,
    target: "es2022",
    // A data: address is no file of ours, and the policy allows it for images alone.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        chunkFileNames: (chunk) => namedIn(chunk, ".js"),
        assetFileNames: (asset) => namedIn({ name: asset.names[0] }, "[extname]"),
        codeSplitting: {
          groups: [
            // What only changes when it is renewed stays with browsers from version to version.
            { name: "svelte", test: /node_modules[\\/](svelte|esm-env|clsx)[\\/]|^\0?vite/ },
            { name: "charts", test: /node_modules[\\/]uplot[\\/].*js$/ },
            // What several views use, in few files: a browser has six connections to a hub.
            {
              name: "shared",
              test: /[\\/]src[\\/]/,
              minShareCount: 2,
              entriesAware: true,
              entriesAwareMergeThreshold: 12_000,
            },
          ],
        },
      },
    },
  },
});
