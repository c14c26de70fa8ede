import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

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
  },
});
